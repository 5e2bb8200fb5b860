package sameserver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware/identity"
)

// Host is what is known about the server of a host.
type Host struct {
	// Namespace and Name are those of the BareMetalHost.
	Namespace, Name string
	// BMCAddress is spec.bmc.address, and BootMAC spec.bootMACAddress, as they were written.
	BMCAddress, BootMAC string
	// Manufacturer, Model and SerialNumber are those that inspection found.
	Manufacturer, Model, SerialNumber string
	// AgentUUID is the system UUID that the agent read from DMI. It is empty when only the BMC was asked.
	AgentUUID string
	// Exceptions is the value of the annotation ingot.dev/not-same-server.
	Exceptions string
	// HasData is true when the disks may have data of a tenant.
	HasData bool
}

// HostOf returns what the objects say. record is nil where there is no HostRecord, as for the hosts of a metal3 NodeProvider.
func HostOf(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) Host {
	out := Host{
		Namespace: h.Namespace, Name: h.Name, BMCAddress: h.Spec.BMC.Address, BootMAC: h.Spec.BootMACAddress,
		Exceptions: h.Annotations[v1alpha1.AnnotationNotSameServer], HasData: hasData(h, record),
	}
	if found := h.Status.HardwareDetails; found != nil {
		vendor := found.SystemVendor
		out.Manufacturer, out.Model, out.SerialNumber = vendor.Manufacturer, vendor.ProductName, vendor.SerialNumber
	}
	if record != nil {
		out = out.WithInventory(record.Status.Seen())
	}
	return out
}

// hasData reports whether the disks may have data of a tenant. Without a HostRecord they may from the first state after the inspection on.
func hasData(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
	if record != nil {
		return record.Status.Installed != nil || record.Status.LastTenant != "" && record.Status.Erased == nil
	}
	return !slices.Contains([]metal3.ProvisioningState{metal3.StateNone, metal3.StateUnmanaged, metal3.StateRegistering, metal3.StateMatchProfile, metal3.StateInspecting}, h.Status.Provisioning.State)
}

// WithInventory returns the host with what an inventory says about its server; nil: there is none.
func (h Host) WithInventory(found *v1alpha1.HostInventory) Host {
	if found == nil {
		return h
	}
	h.Manufacturer, h.Model, h.SerialNumber, h.AgentUUID = found.Manufacturer, found.Model, found.SerialNumber, found.SystemUUID
	return h
}

// FullName returns namespace/name.
func (h Host) FullName() string { return h.Namespace + "/" + h.Name }

// Keys returns one text for each thing that is known about the server, sorted. Two hosts that are one server have a key in common.
func (h Host) Keys() []string {
	keys := make([]string, 0, 4)
	for _, known := range [...]struct{ prefix, value string }{
		{"bmc=", bmcOf(h.BMCAddress).endpoint}, {"mac=", identity.MAC(h.BootMAC)}, {"serial=", h.serial()}, {"uuid=", identity.SystemUUID(h.AgentUUID)},
	} {
		if known.value != "" {
			keys = append(keys, known.prefix+known.value)
		}
	}
	return keys
}

// serial returns manufacturer, model and serial number in one text. It is empty unless all three are known.
func (h Host) serial() string {
	manufacturer, model, number := identity.ManufacturerName(h.Manufacturer), identity.ModelName(h.Model), identity.SerialNumber(h.SerialNumber)
	if manufacturer == "" || model == "" || number == "" {
		return ""
	}
	return manufacturer + "/" + model + "/" + number
}

// hasOtherSerial reports whether both serial numbers are known, of one manufacturer and model, and differ.
func (h Host) hasOtherSerial(other Host) bool {
	a, b := h.serial(), other.serial()
	return a != "" && b != "" && a != b && identity.ManufacturerName(h.Manufacturer) == identity.ManufacturerName(other.Manufacturer) && identity.ModelName(h.Model) == identity.ModelName(other.Model)
}

// isExceptedFrom reports whether the annotation of the host names the other one, as NAME in its own namespace or as NAMESPACE/NAME. It may name
// several hosts, separated by commas.
func (h Host) isExceptedFrom(other Host) bool {
	return slices.ContainsFunc(strings.Split(h.Exceptions, ","), func(name string) bool {
		name = strings.TrimSpace(name)
		return name == other.FullName() || name == other.Name && h.Namespace == other.Namespace
	})
}

// Compare returns the evidence that two hosts are one server, such as "the same boot MAC address 0c:42:a1:00:00:01". It is empty when there
// is none, when both are the same object, and when the annotation of either host names the other one.
//
// The annotation does not count for hosts with the same BMC. Without that: the address of one server is typed twice, the annotation says truly
// that there are two servers, the second host is deleted, and the first server is powered off under its node.
func Compare(a, b Host) string {
	switch {
	case a.FullName() == b.FullName():
		return ""
	case HasSameBMC(a, b):
		first, second := bmcOf(a.BMCAddress), bmcOf(b.BMCAddress)
		return "the same BMC " + first.endpoint + cmp.Or(first.systemPath, second.systemPath)
	case a.isExceptedFrom(b) || b.isExceptedFrom(a):
		return ""
	}
	if mac := identity.MAC(a.BootMAC); mac != "" && mac == identity.MAC(b.BootMAC) {
		return "the same boot MAC address " + mac
	}
	if serial := a.serial(); serial != "" && serial == b.serial() {
		return fmt.Sprintf("the same serial number %s of a %s %s", input.Line(a.SerialNumber, maxQuoted), input.Line(a.Manufacturer, maxQuoted), input.Line(a.Model, maxQuoted))
	}
	if uuid := identity.SystemUUID(a.AgentUUID); uuid != "" && uuid == identity.SystemUUID(b.AgentUUID) && !a.hasOtherSerial(b) {
		return "the same system UUID " + uuid
	}
	return ""
}

// HasSameBMC reports whether the BMC addresses of both hosts, in any spelling, lead to the same system, or may do so because one of them names
// no system.
func HasSameBMC(a, b Host) bool { return bmcOf(a.BMCAddress).isSameSystem(bmcOf(b.BMCAddress)) }

// maxQuoted is how many bytes of a text from a BMC a message quotes.
const maxQuoted = 80

// Conflict is another host that is the same server.
type Conflict struct {
	// Host is namespace/name of the other BareMetalHost.
	Host string
	// Evidence says what both have in common.
	Evidence string
	// IsSameBMC is true when both have the same BMC, which no annotation excepts.
	IsSameBMC bool
	// HasData is true when the disks may have data of a tenant by what is known of the other host.
	HasData bool
}

// HasData reports whether the disks may have data of a tenant by what is known of one of the other hosts.
func HasData(conflicts []Conflict) bool {
	return slices.ContainsFunc(conflicts, func(c Conflict) bool { return c.HasData })
}

// Conflicts returns the hosts among others that are the same server as the host, sorted by name.
func Conflicts(host Host, others []Host) []Conflict {
	var out []Conflict
	for _, other := range others {
		if evidence := Compare(host, other); evidence != "" {
			out = append(out, Conflict{Host: other.FullName(), Evidence: evidence, IsSameBMC: HasSameBMC(host, other), HasData: other.HasData})
		}
	}
	slices.SortFunc(out, func(a, b Conflict) int { return cmp.Compare(a.Host, b.Host) })
	return out
}

// ConflictsOfAll returns the conflicts of each host, by its namespace/name. It compares only hosts that have a key in common.
func ConflictsOfAll(hosts []Host) map[string][]Conflict {
	withKey, keys := map[string][]Host{}, make([][]string, len(hosts))
	for i, h := range hosts {
		keys[i] = h.Keys()
		for _, key := range keys[i] {
			withKey[key] = append(withKey[key], h)
		}
	}
	out := map[string][]Conflict{}
	for i, h := range hosts {
		var candidates []Host
		for _, key := range keys[i] {
			if len(withKey[key]) == 1 {
				continue // its own
			}
			for _, other := range withKey[key] {
				if !slices.Contains(candidates, other) {
					candidates = append(candidates, other)
				}
			}
		}
		if found := Conflicts(h, candidates); len(found) > 0 {
			out[h.FullName()] = found
		}
	}
	return out
}

// Describe names the first of the other hosts, with the evidence, and counts the rest. It is empty without conflicts.
func Describe(conflicts []Conflict) string {
	if len(conflicts) == 0 {
		return ""
	}
	text := fmt.Sprintf("BareMetalHost %s has %s", conflicts[0].Host, conflicts[0].Evidence)
	if more := len(conflicts) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more are this server too", more)
	}
	return text
}

// Message says what is wrong with a host that has conflicts, and what to do. It never asks anybody to power a server off, because the
// other host may run a node on it. A host that a Machine has is detached first. Without it: its deletion waits for the release of its Machine, that
// waits until no other host is this server, and the policy for claimed hosts admits no other address.
func Message(conflicts []Conflict) string {
	text := Describe(conflicts) + ", so both are one server. Neither host is claimed, installed, erased or powered, and what runs on the server keeps running. " +
		"Delete the host that is wrong, which changes nothing on the server, or correct its BMC address or boot MAC address; if a Machine has it, first annotate it with " +
		metal3.DetachedAnnotation + ", so that nothing is done to either server, and remove that after a correction"
	if conflicts[0].IsSameBMC {
		return text + "; two systems of one BMC need addresses that name the system, such as redfish://10.0.0.11/redfish/v1/Systems/1"
	}
	return text + ". If they are two servers, say so on one of them; a release of either host then powers off and erases the server at its BMC address: " + v1alpha1.AnnotationNotSameServer + ": " + conflicts[0].Host
}
