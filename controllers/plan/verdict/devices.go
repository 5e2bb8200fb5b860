package verdict

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Attributes by which NVIDIA's driver tells devices apart.
const (
	attributeType    = "type"
	attributeProfile = "profile"
)

// device is a device as a driver publishes it.
type device struct {
	driver string
	*resourcev1.Device
}

// value is what an attribute says.
type value struct {
	text    string
	version bool
}

// attribute gives the values of an attribute; none: the device lacks it. A name without a domain is in the driver's.
func (d device) attribute(name string) []value {
	a, ok := d.Attributes[resourcev1.QualifiedName(name)]
	if !ok && !strings.Contains(name, "/") {
		a, ok = d.Attributes[resourcev1.QualifiedName(d.driver+"/"+name)]
	}
	if !ok {
		return nil
	}
	return values(a)
}

func values(a resourcev1.DeviceAttribute) []value {
	var out []value
	add := func(text string, version bool) { out = append(out, value{text, version}) }
	switch {
	case a.StringValue != nil:
		add(*a.StringValue, false)
	case a.VersionValue != nil:
		add(*a.VersionValue, true)
	case a.IntValue != nil:
		add(strconv.FormatInt(*a.IntValue, 10), false)
	case a.BoolValue != nil:
		add(strconv.FormatBool(*a.BoolValue), false)
	}
	for _, s := range a.StringValues {
		add(s, false)
	}
	for _, s := range a.VersionValues {
		add(s, true)
	}
	for _, i := range a.IntValues {
		add(strconv.FormatInt(i, 10), false)
	}
	for _, b := range a.BoolValues {
		add(strconv.FormatBool(b), false)
	}
	return out
}

// text is an attribute's value for people and for comparison with one string.
func (d device) text(name string) string {
	var parts []string
	for _, v := range d.attribute(name) {
		parts = append(parts, v.text)
	}
	return strings.Join(parts, ",")
}

// is says whether the device is of the expected kind.
func (d device) is(e v1alpha1.ExpectedDevices) bool {
	return d.text(attributeType) == e.Type && (len(e.Profiles) == 0 || slices.Contains(e.Profiles, d.text(attributeProfile)))
}

// kind names what a device is.
func (d device) kind() string {
	kind := "of type " + cmp.Or(v1alpha1.Truncate(d.text(attributeType), maxName), "unknown")
	if p := d.text(attributeProfile); p != "" {
		kind += " and profile " + v1alpha1.Truncate(p, maxName)
	}
	return kind
}

// accepted: every value is one of those wanted. A version has a semantic form, without leading zeros, which the API
// demands: 550.163.1 is the driver 550.163.01.
func accepted(seen []value, wanted []string) bool {
	for _, v := range seen {
		if !slices.ContainsFunc(wanted, func(w string) bool { return w == v.text || v.version && semantic(w) == semantic(v.text) }) {
			return false
		}
	}
	return true
}

func semantic(version string) string {
	parts := strings.Split(version, ".")
	for i, p := range parts {
		parts[i] = cmp.Or(strings.TrimLeft(p, "0"), "0")
	}
	return strings.Join(parts, ".")
}
