// Package providerkind says what each kind of NodeProvider can do.
//
// It is known before there is an Installer, because a NodeType is checked by it, also on a machine that reaches no server. A test of the manager compares it
// with what the Installers say of themselves.
package providerkind

import (
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Kind is a kind of NodeProvider.
type Kind struct {
	// Name is that of its field in the NodeProvider's spec.
	Name string
	// Installer is what the Installer can do. For metal3 it is what the baremetal-operator can do.
	Installer hardware.Capabilities
	// HasRecords is true where each host has a HostRecord.
	HasRecords bool
	// ComparesHardware is true where the hardware that is found is compared with what the NodeType requires, before a disk is written.
	ComparesHardware bool
	// HasIPMI is true where a BMC that speaks IPMI alone is enough.
	HasIPMI bool
	// HasQueue is true where hosts wait for their turn, with their place shown.
	HasQueue bool
}

// The kinds.
var (
	Redfish = Kind{
		Name: "redfish", HasRecords: true, ComparesHardware: true,
		Installer: hardware.Capabilities{
			Formats:      []string{"raw", "raw.gz", "raw.zst"},
			EraseModes:   []hardware.EraseMode{hardware.EraseNone, hardware.EraseMetadata, hardware.EraseFull},
			ByteProgress: true, AgentInventory: true, DiskEvidence: true, RootDeviceHints: hardware.AgentHints(),
		},
	}
	Ironic = Kind{
		Name: "ironic", HasRecords: true, HasIPMI: true, HasQueue: true,
		Installer: hardware.Capabilities{
			Formats:          []string{"raw", "qcow2", "live-iso"},
			EraseModes:       []hardware.EraseMode{hardware.EraseNone, hardware.EraseMetadata, hardware.EraseFull},
			NeedsConfigDrive: true, NeedsRelease: true, BootsToInspect: true, RootDeviceHints: hardware.AllHints(),
		},
	}
	Metal3 = Kind{
		Name: "metal3", HasIPMI: true,
		Installer: hardware.Capabilities{
			Formats:          []string{"raw", "qcow2", "live-iso"},
			EraseModes:       []hardware.EraseMode{hardware.EraseNone, hardware.EraseMetadata},
			NeedsConfigDrive: true, RootDeviceHints: hardware.AllHints(),
		},
	}
)

// All returns every kind.
func All() []Kind { return []Kind{Redfish, Ironic, Metal3} }

// Of returns the kind of a NodeProvider.
func Of(provider v1alpha1.NodeProviderSpec) Kind {
	switch {
	case provider.Ironic != nil:
		return Ironic
	case provider.Metal3 != nil:
		return Metal3
	default:
		return Redfish
	}
}

// CanWrite reports whether the kind writes images of the format.
func (k Kind) CanWrite(format v1alpha1.ImageFormat) bool {
	return slices.Contains(k.Installer.Formats, string(format))
}

// ProvenErase returns what an erase of the mode counts as between tenants. A full erase without evidence for each disk may have left one out.
func (k Kind) ProvenErase(mode v1alpha1.EraseMode) v1alpha1.EraseMode {
	if mode == v1alpha1.EraseFull && !k.Installer.DiskEvidence {
		return v1alpha1.EraseMetadata
	}
	return mode
}

// Table returns a table in Markdown of what the kinds can do.
func Table() string {
	kinds := All()
	rows := []struct {
		title string
		cell  func(Kind) string
	}{
		{"image formats", func(k Kind) string { return strings.Join(k.Installer.Formats, ", ") }},
		{"root device hints", rootDeviceHints},
		{"erase modes", eraseModes},
		{"evidence of an erase for each disk", func(k Kind) string { return yesNo(k.Installer.DiskEvidence) }},
		{"a full erase lets a host go to another tenant", func(k Kind) string {
			return yesNo(k.ProvenErase(v1alpha1.EraseFull) == v1alpha1.EraseFull && canErase(k, hardware.EraseFull))
		}},
		{"HostRecord: attempt, deadline, reasons, inventory", func(k Kind) string { return yesNo(k.HasRecords) }},
		{"progress in bytes", func(k Kind) string { return yesNo(k.Installer.ByteProgress) }},
		{"inventory by Ingot's agent, GPUs among it", func(k Kind) string { return yesNo(k.Installer.AgentInventory) }},
		{"`spec.hardware` compared before a disk is written", func(k Kind) string { return yesNo(k.ComparesHardware) }},
		{"BMCs that speak IPMI alone", func(k Kind) string { return yesNo(k.HasIPMI) }},
		{"a queue with the place of each host", func(k Kind) string { return yesNo(k.HasQueue) }},
		{"the bootstrap token is made when the installer runs on the server", func(k Kind) string { return yesNo(!k.Installer.NeedsConfigDrive) }},
	}
	var out strings.Builder
	line := func(title string, cell func(Kind) string) {
		out.WriteString("| " + title + " |")
		for _, k := range kinds {
			out.WriteString(" " + cell(k) + " |")
		}
		out.WriteString("\n")
	}
	line("", func(k Kind) string { return "`" + k.Name + "`" })
	out.WriteString("|---|" + strings.Repeat("---|", len(kinds)) + "\n")
	for _, row := range rows {
		line(row.title, row.cell)
	}
	return out.String()
}

func canErase(k Kind, mode hardware.EraseMode) bool {
	return slices.Contains(k.Installer.EraseModes, mode)
}

func eraseModes(k Kind) string {
	names := make([]string, len(k.Installer.EraseModes))
	for i, mode := range k.Installer.EraseModes {
		names[i] = string(mode)
	}
	return strings.Join(names, ", ")
}

// rootDeviceHints returns all, or the names of those that the kind follows.
func rootDeviceHints(k Kind) string {
	if len(k.Installer.RootDeviceHints) == len(hardware.AllHints()) {
		return "all of Metal3"
	}
	names := make([]string, len(k.Installer.RootDeviceHints))
	for i, hint := range k.Installer.RootDeviceHints {
		names[i] = string(hint)
	}
	return strings.Join(names, ", ")
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
