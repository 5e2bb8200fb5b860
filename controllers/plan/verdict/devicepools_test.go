package verdict

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAnAttributeHasTheValuesOfItsTypeAndItsList(t *testing.T) {
	for _, c := range []struct {
		name      string
		attribute resourcev1.DeviceAttribute
		want      []attributeValue
	}{
		{"no value", resourcev1.DeviceAttribute{}, nil},
		{"a string", resourcev1.DeviceAttribute{StringValue: ptr.To("gpu")}, []attributeValue{{"gpu", false}}},
		{"a version", resourcev1.DeviceAttribute{VersionValue: ptr.To("1.2.3")}, []attributeValue{{"1.2.3", true}}},
		{"an integer", resourcev1.DeviceAttribute{IntValue: ptr.To(int64(16))}, []attributeValue{{"16", false}}},
		{"true", resourcev1.DeviceAttribute{BoolValue: ptr.To(true)}, []attributeValue{{"true", false}}},
		{"false", resourcev1.DeviceAttribute{BoolValue: ptr.To(false)}, []attributeValue{{"false", false}}},
		{"strings", resourcev1.DeviceAttribute{StringValues: []string{"a", "b"}}, []attributeValue{{"a", false}, {"b", false}}},
		{"versions", resourcev1.DeviceAttribute{VersionValues: []string{"1.0.0", "2.0.0"}}, []attributeValue{{"1.0.0", true}, {"2.0.0", true}}},
		{"integers", resourcev1.DeviceAttribute{IntValues: []int64{12, 30}}, []attributeValue{{"12", false}, {"30", false}}},
		{"booleans", resourcev1.DeviceAttribute{BoolValues: []bool{true, false}}, []attributeValue{{"true", false}, {"false", false}}},
	} {
		if got := values(c.attribute); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAnAttributeWithoutADomainBelongsToTheDriver(t *testing.T) {
	d := device{driver: "gpu.nvidia.com", Device: &resourcev1.Device{Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"short": {StringValue: ptr.To("as published")}, "gpu.nvidia.com/long": {StringValue: ptr.To("with the domain")},
		"gpu.nvidia.com/example.com/x": {StringValue: ptr.To("never")},
	}}}
	for name, want := range map[string]string{"short": "as published", "long": "with the domain", "gpu.nvidia.com/long": "with the domain", "example.com/x": "", "absent": ""} {
		if got := d.attributeText(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestAVersionIsAcceptedWithoutItsLeadingZeros(t *testing.T) {
	for _, c := range []struct {
		observed attributeValue
		accepted string
		want     bool
	}{
		{attributeValue{"550.163.1", true}, "550.163.01", true},
		{attributeValue{"550.163.0", true}, "550.163.00", true},
		{attributeValue{"550.163.1", true}, "550.163.10", false},
		{attributeValue{"550.163.1", true}, "5501.63.1", false},
		{attributeValue{"550.163.1", false}, "550.163.01", false},
		{attributeValue{"550.163.1", false}, "550.163.1", true},
	} {
		if got := isAccepted([]attributeValue{c.observed}, []string{"other", c.accepted}); got != c.want {
			t.Errorf("%v for %s: %t, want %t", c.observed, c.accepted, got, c.want)
		}
	}
	if isAccepted([]attributeValue{{"a", false}, {"b", false}}, []string{"a"}) {
		t.Error("one of two values is not expected, and both were accepted")
	}
}

func TestTheKernelHasTheExpectedVersionOrBeginsWithItsNumbers(t *testing.T) {
	for _, c := range []struct {
		expected, observed string
		want               bool
	}{
		{"6.1", "6.1", true}, {"6.1", "6.1.5-amd64", true}, {"6.1", "6.12", false}, {"6.1", "6.2", false}, {"6.1", "5.6.1", false},
		{"6.1.5-amd64", "6.1.5-amd64", true}, {"6.1.5-amd", "6.1.5-amd64", true}, {"6.1.", "6.1.5", true}, {"61", "6", false},
	} {
		if got := hasVersionPrefix(c.expected, c.observed); got != c.want {
			t.Errorf("expected %s, observed %s: %t, want %t", c.expected, c.observed, got, c.want)
		}
	}
}

func TestFiveNamesAreListedAndTheOthersCounted(t *testing.T) {
	for want, names := range map[string]string{"": "", "a": "a", "a, b, c, d, e": "a b c d e", "a, b, c, d, e and 1 more": "a b c d e f", "a, b, c, d, e and 3 more": "a b c d e f g h"} {
		if got := joinNames(strings.Fields(names)); got != want {
			t.Errorf("%s: got %q, want %q", names, got, want)
		}
	}
}

func TestTheSelectorsOfADeviceClassAreLimitedInNumberAndLength(t *testing.T) {
	long := "true" + strings.Repeat(" ", maxExpression-4)
	many := slices.Repeat([]string{"true"}, maxSelectors)
	for _, c := range []struct {
		name, problem string
		expressions   []string
	}{
		{"no selector", "", nil},
		{"as many as the API permits", "", many},
		{"one more", fmt.Sprintf("it has more than %d selectors", maxSelectors), append(slices.Clone(many), "true")},
		{"the longest that the API permits", "", []string{long}},
		{"one byte more", fmt.Sprintf("selector 1 has more than %d bytes", maxExpression), []string{"true", long + " "}},
	} {
		if got := Compile(class(c.expressions...)).problem; got != c.problem {
			t.Errorf("%s: the problem is %q, want %q", c.name, got, c.problem)
		}
	}
}

func TestAnExactResourceMustBeAdvertisedAndHealthyInFull(t *testing.T) {
	const wait, fail, pass = v1alpha1.CheckWait, v1alpha1.CheckFail, v1alpha1.CheckPass
	for _, c := range []struct {
		capacity, allocatable string // empty: not reported
		waits                 bool
		want                  v1alpha1.CheckResult
		observed              string
	}{
		{"8", "8", false, pass, "8"}, {"8", "8", true, pass, "8"},
		{"", "", false, wait, "0"}, {"", "", true, wait, "0"},
		{"7", "7", false, fail, "7"}, {"7", "7", true, wait, "7"},
		{"8", "7", false, fail, "capacity 8, allocatable 7"}, {"8", "7", true, wait, "capacity 8, allocatable 7"},
		{"8", "", false, fail, "capacity 8, allocatable 0"},
		{"9", "9", false, fail, "9"}, {"9", "9", true, fail, "9"}, {"9", "8", false, fail, "capacity 9, allocatable 8"}, {"8", "9", false, fail, "capacity 8, allocatable 9"},
		{"9", "7", true, fail, "capacity 9, allocatable 7"},
	} {
		node := &corev1.Node{Status: corev1.NodeStatus{Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{}}}
		for text, list := range map[*string]corev1.ResourceList{&c.capacity: node.Status.Capacity, &c.allocatable: node.Status.Allocatable} {
			if *text != "" {
				list["nvidia.com/gpu"] = resource.MustParse(*text)
			}
		}
		got := exactResourceCheck(node, v1alpha1.ExpectedResource{Name: "nvidia.com/gpu", Quantity: resource.MustParse("8"), Waits: c.waits, Hint: "the hint"})
		if got.Result != c.want || got.Observed != c.observed || strings.HasSuffix(got.Hint, "the hint") != (c.want != pass) {
			t.Errorf("capacity %q, allocatable %q, waits %t: got %+v", c.capacity, c.allocatable, c.waits, got)
		}
	}
}
