package entitlement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// noon is when the tests begin.
var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// claimAt returns a claim that has a device since a minute; a negative one: it has none.
func claimAt(name string, minute int) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "legal", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon)}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "legal-h100", Count: 1}}}
	if minute >= 0 {
		at := metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))
		c.Status.Allocation = &resourcev1.AllocationResult{AllocationTimestamp: &at, Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Device: "gpu-0"}},
		}}
	}
	return c
}

// unknownSince returns a claim that has a device, of a cluster that does not say since when.
func unknownSince(version string) *resourcev1.ResourceClaim {
	c := claimAt("a", 0)
	c.ResourceVersion, c.Status.Allocation.AllocationTimestamp = version, nil
	return c
}

func TestUsesOfOneClaimAreToldApartWithoutATime(t *testing.T) {
	first, second := ChangesOf(claimAt("a", -1), unknownSince("7")), ChangesOf(claimAt("a", -1), unknownSince("9"))
	if len(first) != 1 || len(second) != 1 || first[0].Mark == second[0].Mark {
		t.Errorf("%+v, %+v", first, second)
	}
	if known := ChangesOf(claimAt("a", -1), claimAt("a", 1)); known[0].Mark != "" {
		t.Errorf("a claim that is reported again after a restart has another mark: %+v", known)
	}
}

func textOf(changes []Change) string {
	var out []string
	for _, c := range changes {
		sign := "+"
		if c.HasEnded {
			sign = "-"
		}
		out = append(out, fmt.Sprintf("%s%s@%d", sign, c.Claim, int(c.Since.Sub(noon).Minutes())))
	}
	return strings.Join(out, " ")
}

func TestAChangeOfAClaimIsABeginningOrAnEnd(t *testing.T) {
	other := claimAt("a", 1)
	other.UID = "another"
	for _, c := range []struct {
		name          string
		before, after *resourcev1.ResourceClaim
		want          string
	}{
		{"it is made", nil, claimAt("a", -1), ""},
		{"it gets devices", claimAt("a", -1), claimAt("a", 1), "+a@1"},
		{"it is seen with devices for the first time", nil, claimAt("a", 1), "+a@1"},
		{"it gets others and the cluster does not say when", unknownSince("7"), unknownSince("8"), ""},
		{"something else of it changes", claimAt("a", 1), claimAt("a", 1), ""},
		{"it loses its devices", claimAt("a", 1), claimAt("a", -1), "-a@1"},
		{"it is gone with its devices", claimAt("a", 1), nil, "-a@1"},
		{"it is gone without", claimAt("a", -1), nil, ""},
		{"it gets others", claimAt("a", 1), claimAt("a", 3), "-a@1 +a@3"},
		{"another one has its name", claimAt("a", 1), other, "-a@1 +a@1"},
	} {
		if got := textOf(ChangesOf(c.before, c.after)); got != c.want {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
	}
}

// held returns the holdings of claims that have devices since the minutes.
func held(claims ...*resourcev1.ResourceClaim) []v1alpha1.DeviceHolding {
	var out []v1alpha1.DeviceHolding
	for _, c := range claims {
		if h, has := HoldingOf(c); has {
			out = append(out, h)
		}
	}
	return out
}

func TestEachChangeIsReportedOnce(t *testing.T) {
	began := func(name string, minute int) Change {
		return Change{DeviceHolding: held(claimAt(name, minute))[0]}
	}
	ended := func(name string, minute int) Change {
		c := began(name, minute)
		c.HasEnded = true
		return c
	}
	many := make([]v1alpha1.DeviceHolding, v1alpha1.MaxHoldings)
	for i := range many {
		many[i] = held(claimAt(fmt.Sprintf("m%d", i), 1))[0]
	}
	for _, c := range []struct {
		name    string
		known   []v1alpha1.DeviceHolding
		seen    []Change
		now     []v1alpha1.DeviceHolding
		isFirst bool
		want    string
	}{
		{"nothing has changed", held(claimAt("a", 1)), nil, held(claimAt("a", 1)), true, ""},
		{"a claim began", nil, []Change{began("a", 1)}, held(claimAt("a", 1)), false, "+a@1"},
		{"it is there before its change arrives", nil, nil, held(claimAt("a", 1)), false, "+a@1"},
		{"its change arrives later", held(claimAt("a", 1)), []Change{began("a", 1)}, held(claimAt("a", 1)), false, ""},
		{"a claim began and ended", nil, []Change{began("a", 1), ended("a", 1)}, nil, false, "+a@1 -a@1"},
		{"an end arrives later", nil, []Change{ended("a", 1)}, nil, false, ""},
		{"a claim is gone, and nobody saw it", held(claimAt("a", 1)), nil, nil, true, "-a@1"},
		{"it has other devices, and nobody saw it", held(claimAt("a", 1)), nil, held(claimAt("a", 3)), true, "+a@3 -a@1"},
		{"of more than are kept some may be old", many, []Change{began("z", 2)}, append(slices.Clone(many), held(claimAt("z", 2))...), true, ""},
		{"of those that are kept one is gone", many, nil, many[1:], true, "-m0@1"},
		{"later all are known", many, nil, append(slices.Clone(many), held(claimAt("z", 2))...), false, "+z@2"},
	} {
		next, changes := Compare(c.known, c.seen, c.now, c.isFirst)
		if got := textOf(changes); got != c.want || len(next) != len(c.now) {
			t.Errorf("%s: %q and %d are held, expected %q and %d", c.name, got, len(next), c.want, len(c.now))
		}
	}
}

// TestAHistoryIsReportedWhole lets claims begin and end at random, and looks at random moments: what is reported of each is a beginning, and then an end.
func TestAHistoryIsReportedWhole(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		existing := map[string]*resourcev1.ResourceClaim{}
		var known []v1alpha1.DeviceHolding
		var seen []Change
		reported := map[string]string{}
		look := func() {
			var now []v1alpha1.DeviceHolding
			for _, c := range existing {
				now = append(now, held(c)...)
			}
			next, changes := Compare(known, seen, now, known == nil)
			for _, c := range changes {
				reported[textOf([]Change{c})[1:]] += textOf([]Change{c})[:1]
			}
			known, seen = next, nil
		}
		for minute := range 40 {
			name := string(rune('a' + random.IntN(4)))
			before, after := existing[name], (*resourcev1.ResourceClaim)(nil)
			if before == nil || random.IntN(3) > 0 {
				after = claimAt(name, minute)
			}
			existing[name] = after
			seen = append(seen, ChangesOf(before, after)...)
			if random.IntN(4) == 0 {
				look()
			}
		}
		look()
		for _, c := range existing {
			for _, h := range held(c) {
				key := textOf([]Change{{DeviceHolding: h}})[1:]
				if reported[key] != "+" {
					t.Fatalf("seed %d: %s is there and was reported %q", seed, key, reported[key])
				}
				delete(reported, key)
			}
		}
		for key, signs := range reported {
			if signs != "+-" {
				t.Fatalf("seed %d: %s is gone and was reported %q", seed, key, signs)
			}
		}
	}
}

func TestWhatWaitsIsCountedByReason(t *testing.T) {
	created := metav1.NewTime(noon)
	pod := func(name string, minute int, change func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "legal", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))}}
		p.Spec.Containers = make([]corev1.Container, 1)
		change(&p)
		return p
	}
	template := func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("t")}}
	}
	says := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
		}
	}
	pods := []corev1.Pod{
		pod("none", 0, says(corev1.PodReasonUnschedulable, "no cpu")),
		pod("quota-2", 2, template), pod("quota-1", 1, template), pod("refused", 1, template),
		pod("named", 3, func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("mine")}}
			says(corev1.PodReasonUnschedulable, strings.Repeat("x", 600))(p)
		}),
		pod("made", 4, func(p *corev1.Pod) {
			template(p)
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To("made-gpu")}}
			says(corev1.PodReasonSchedulingGated, "gated")(p)
		}),
		pod("needs-none", 4, func(p *corev1.Pod) { // Kubernetes decided that the pod needs no claim
			template(p)
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu"}}
		}),
		pod("plugin", 5, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Resources: asksFor("nvidia.com/gpu", "2")}}
			p.Spec.Containers = []corev1.Container{{Resources: asksFor("nvidia.com/gpu", "1")}, {Resources: asksFor("cpu", "8")}}
		}),
	}
	var asking []Pod
	for i := range pods {
		if p, asks := PodOf(&pods[i], []string{"nvidia.com/gpu*"}); asks {
			asking = append(asking, p)
		}
	}
	if n := asking[len(asking)-1].Resources["nvidia.com/gpu"]; n != 2 || len(asking) != 7 {
		t.Errorf("%d pods ask, the last one for %d", len(asking), n)
	}
	claims := []resourcev1.ResourceClaim{*claimAt("mine", -1), *claimAt("made-gpu", -1), *claimAt("idle", -1)}
	claims[2].CreationTimestamp = created
	got := Waits(claims, asking, Refusals{"legal/quota-1": "exceeded quota: ingot-legal", "legal/quota-2": "exceeded quota: ingot-legal", "legal/refused": "a webhook"})
	var text []string
	for _, w := range got {
		if len(w.Message) > v1alpha1.MaxWaitMessage {
			t.Errorf("a message of %d bytes", len(w.Message))
		}
		text = append(text, fmt.Sprintf("%s %s %d %s", w.Kind, w.Reason, w.Count, w.Longest))
	}
	want := []string{
		"Pod ClaimNotMade 1 legal/refused", "Pod NotTried 3 legal/made", "Pod QuotaExceeded 2 legal/quota-1", "Pod Unschedulable 1 legal/named",
		"ResourceClaim Unallocated 2 legal/mine", "ResourceClaim Unused 1 legal/idle",
	}
	if !slices.Equal(text, want) {
		t.Errorf("\n%s\nexpected\n%s", strings.Join(text, "\n"), strings.Join(want, "\n"))
	}
}

func asksFor(name, n string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(n)}}
}

func TestResourcesOfADevicePluginAreCountedByTheQuota(t *testing.T) {
	quotas := []corev1.ResourceList{
		{"requests.nvidia.com/gpu": resource.MustParse("3"), "legal-h100.deviceclass.resource.k8s.io/devices": resource.MustParse("9")},
		{"requests.nvidia.com/gpu": resource.MustParse("2")},
	}
	waiting := []Pod{{Resources: map[string]int64{"nvidia.com/gpu": 4}}, {Resources: map[string]int64{"nvidia.com/gpu": 4, "example.com/a": 1}}}
	got := CountResources(quotas, waiting)
	if want := (Usage{Allocated: 0, Pending: 5}); len(got) != 1 || got["nvidia.com/gpu"] != want {
		t.Errorf("%+v", got)
	}
	if got := CountResources(quotas, waiting[:1])["nvidia.com/gpu"]; got != (Usage{Allocated: 1, Pending: 4}) {
		t.Errorf("%+v", got)
	}
}
