package entitlement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// Promise is what the nodes of a NodeType must advertise.
type Promise struct {
	// Problem says why it is not known; empty: Expectation has it.
	Problem     string
	Expectation v1alpha1.NodeExpectation
	// IsDedicated: NVIDIA's runtime on the nodes is not set up for pods of several tenants.
	IsDedicated bool
}

// offer is a kind of device that nodes of a NodeType have.
type offer struct {
	kind v1alpha1.DeviceKind
	// profiles are the names of the profile; resource is that of a device plugin.
	profiles []string
	resource string
	// driver and devices are those of a DRA driver.
	driver  string
	devices v1alpha1.ExpectedDevices
}

// kindsByType are the kinds by the attribute type of a device. A driver without types has whole devices.
var kindsByType = map[string]v1alpha1.DeviceKind{
	"":                               v1alpha1.DeviceGPU,
	wellknown.NVIDIADeviceTypeGPU:    v1alpha1.DeviceGPU,
	wellknown.NVIDIADeviceTypeMIG:    v1alpha1.DeviceMIG,
	wellknown.NVIDIADeviceTypeVFIO:   v1alpha1.DeviceVFIO,
	wellknown.AMDDeviceTypeGPU:       v1alpha1.DeviceGPU,
	wellknown.AMDDeviceTypePartition: v1alpha1.DevicePartition,
}

// offers returns the devices that can be entitled to.
func offers(e v1alpha1.NodeExpectation) []offer {
	var out []offer
	for _, s := range e.Slices {
		for _, d := range s.Devices {
			o := offer{kind: kindsByType[d.Type], driver: s.Driver, devices: d, profiles: d.Profiles}
			if o.kind == v1alpha1.DevicePartition {
				o.profiles = d.Attributes[wellknown.AMDAttributePartitionProfile]
			}
			if o.kind != "" && d.Count > 0 {
				out = append(out, o)
			}
		}
	}
	for _, r := range e.Resources {
		if strings.Contains(string(r.Name), "/") && r.Quantity.Sign() > 0 {
			out = append(out, offer{kind: v1alpha1.DeviceResource, resource: string(r.Name)})
		}
	}
	return out
}

// String returns the members of an Entitlement's class that ask for it.
func (o offer) String() string {
	switch {
	case o.kind == v1alpha1.DeviceResource:
		return "kind Resource with resource " + o.resource
	case len(o.profiles) > 0:
		return fmt.Sprintf("kind %s with profile %s", o.kind, o.profiles[0])
	}
	return "kind " + string(o.kind)
}

// isFor reports whether it is what a class asks for.
func (o offer) isFor(c v1alpha1.EntitledClass) bool {
	return o.kind == c.Kind && o.resource == c.Resource && (c.Profile == "" || slices.Contains(o.profiles, c.Profile))
}

// match returns what a class asks for, or why nodes of its NodeType have no such devices.
func match(c v1alpha1.EntitledClass, promises map[string]Promise) (offered []offer, reason, problem string) {
	promise, found := promises[c.NodeTypeRef.Name]
	switch {
	case !found:
		return nil, v1alpha1.ReasonNodeTypeUnknown, fmt.Sprintf("there is no NodeType %s: %s", c.NodeTypeRef.Name, known(promises))
	case promise.Problem != "":
		return nil, v1alpha1.ReasonNodeTypeUnknown, fmt.Sprintf("what NodeType %s promises is not known: %s", c.NodeTypeRef.Name, promise.Problem)
	}
	all := offers(promise.Expectation)
	for _, o := range all {
		if o.isFor(c) {
			offered = append(offered, o)
		}
	}
	if len(offered) > 0 {
		return offered, "", ""
	}
	asked := offer{kind: c.Kind, resource: c.Resource}
	if c.Profile != "" {
		asked.profiles = []string{c.Profile}
	}
	var fitting []string
	for _, o := range all {
		fitting = append(fitting, o.String())
	}
	has := "they have no devices that a class could give"
	if len(fitting) > 0 {
		slices.Sort(fitting)
		has = "they have " + strings.Join(slices.Compact(fitting), "; ")
	}
	return nil, v1alpha1.ReasonNotPromised, fmt.Sprintf("nodes of NodeType %s have no devices for %s: %s", c.NodeTypeRef.Name, asked, has)
}

func known(promises map[string]Promise) string {
	if len(promises) == 0 {
		return "there is none at all"
	}
	return "there are " + strings.Join(slices.Sorted(maps.Keys(promises)), ", ")
}
