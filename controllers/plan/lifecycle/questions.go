package lifecycle

import (
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// The states of a BareMetalHost that a Machine's life depends on, in Metal3's words.
const (
	StateAvailable    = "available"
	StateReady        = "ready" // Metal3's older word for available
	StateProvisioning = "provisioning"
	StateProvisioned  = "provisioned"
)

// HasClaimedHost: the host is there, and its consumerRef has this Machine's uid.
func (f Facts) HasClaimedHost() bool { return f.Host != nil && f.Host.Consumer == ConsumerMine }

// IsHostFit: the host is nobody's, and placement finds it fit.
func (f Facts) IsHostFit() bool {
	return f.Host != nil && f.Host.Consumer == ConsumerNone && f.Host.Unfit == ""
}

// HasImageOnDisk: the host reports this attempt's image, written and verified.
func (f Facts) HasImageOnDisk() bool {
	h := f.Host
	if h.State != StateProvisioned || h.Error != "" || !f.HasImageRequested() {
		return false
	}
	if !f.HasRecord() {
		return h.InstalledURL == h.ImageURL
	}
	return h.Record != nil && h.Record.Status.Installed != nil &&
		h.Record.Status.Installed.MachineUID == f.Machine.UID && h.Record.Status.Installed.Attempt == f.Machine.Status.Attempt
}

// HasImageRequested: the host was asked for this Machine's image.
func (f Facts) HasImageRequested() bool {
	return f.Host.ImageURL != "" && f.Host.ImageURL == f.Revision.Image.URL && f.Host.Online
}

// IsPoweredOff: the BMC confirmed the power-off after it was asked for.
func (f Facts) IsPoweredOff() bool {
	h := f.Host
	if h == nil || h.Online {
		return false
	}
	if !f.HasRecord() {
		return !h.PoweredOn
	}
	// An older observation may have been made before the power-off was asked for.
	return h.Record != nil && h.Record.Status.Power != nil && h.Record.Status.Power.State == "Off" &&
		h.Record.Status.Power.ObservedGeneration >= h.Generation
}

// HasRecord: the host has a HostRecord, or should have one. The provider may be gone while its hosts are still there.
func (f Facts) HasRecord() bool { return f.Provider.Records || f.Host.Record != nil }

// IsNodeGone: the Machine's Node object is known not to exist.
func (f Facts) IsNodeGone() bool { return f.Tenant.Reachable && !f.HasOwnNode() }

// IsHostBack: the host is available again, erased as was asked.
func (f Facts) IsHostBack() bool {
	h := f.Host
	if h.ImageURL != "" || h.Error != "" || (h.State != StateAvailable && h.State != StateReady) {
		return false
	}
	if h.Record == nil {
		return !f.Provider.Records
	}
	r := h.Record.Status
	if r.Wanted.IsOpen() {
		return false
	}
	return r.Installed == nil && (r.LastTenant == "" || r.Erased != nil)
}

// HasPassingVerdict: the verdict passed and speaks of this Node, this boot and what the Machine was installed with.
func (f Facts) HasPassingVerdict() bool {
	v := f.Machine.Status.Verdict
	return f.HasVerdictOfNode() && v.Result == v1alpha1.CheckPass && v.Admitted && f.Node.Found && v.BootID == f.Node.BootID
}

// HasVerdictOfNode says whether there is a verdict on this Node, as it was installed, whatever it says and whichever boot it saw.
func (f Facts) HasVerdictOfNode() bool {
	v, s := f.Machine.Status.Verdict, f.Machine.Status
	return v != nil && v.NodeUID == f.Node.UID && v.Revision == s.Revision && v.Rendering == s.Rendering
}

// NeedsToken: while an installation is on its way to a Node. When Provisioning ran out of time before anything was asked of
// the host, the token is still to be made, or the Machine could never go on.
func (f Facts) NeedsToken() bool {
	if !f.HasClaimedHost() {
		return false
	}
	switch f.Machine.Status.Phase {
	case v1alpha1.MachineProvisioning:
		return !f.IsOverdue() || !f.HasImageRequested()
	case v1alpha1.MachineJoining:
		return !f.IsOverdue()
	default:
		return false
	}
}

// IsOverdue: the deadline of the phase has passed.
func (f Facts) IsOverdue() bool {
	d := f.Machine.Status.Deadline
	return d != nil && !f.Now.Before(d.Time)
}

// Entered is when the current phase began.
func (f Facts) Entered() time.Time {
	if t := f.Machine.Status.Timeline; len(t) > 0 {
		return t[len(t)-1].At.Time
	}
	return f.Machine.Created
}

// IsDrainOver: pods had their time to leave.
func (f Facts) IsDrainOver() bool { return !f.Now.Before(f.Entered().Add(f.Timeouts.Draining)) }

// ProviderID is that of what this attempt installs.
func (m Machine) ProviderID() string { return v1alpha1.ProviderID(m.UID, m.Status.Attempt) }

// HasOwnNode: the Node is this Machine's, of this attempt or of an earlier one.
func (f Facts) HasOwnNode() bool {
	return f.Node.Found && strings.HasPrefix(f.Node.ProviderID, v1alpha1.ProviderIDPrefix+string(f.Machine.UID)+"/")
}

// HasNodeOfThisAttempt: the Node was registered by what this attempt installed.
func (f Facts) HasNodeOfThisAttempt() bool {
	return f.Tenant.Reachable && f.Node.Found && f.Node.ProviderID == f.Machine.ProviderID()
}

// CanHaveBooted: the installed system may run, or nobody knows.
func (f Facts) CanHaveBooted() bool {
	installing := []string{"registering", "inspecting", "preparing", StateAvailable, StateReady, StateProvisioning}
	return f.HasOwnNode() || !slices.Contains(installing, f.Host.State)
}

// HasPowerOffBegun: the power-off was asked for, or the status says that it will be: from there on there is no way back. The
// status says so before the host is asked, so that no request on its way can be overlooked.
func (f Facts) HasPowerOffBegun() bool {
	return !f.Host.Online || f.Machine.Status.PowerOffRequestedAt != nil
}

// IsCalledOff: no other revision is wanted any more, and what is installed still runs as it did before the roll.
func (f Facts) IsCalledOff() bool {
	return f.Next.Name == "" && f.Machine.Status.NodeRef != nil && f.HasNodeOfThisAttempt() && !f.HasPowerOffBegun()
}

// CanTakeImage: the host can be asked for another image. With a HostRecord it always can; a baremetal-operator installs
// anew only what it has deprovisioned.
func (f Facts) CanTakeImage() bool {
	h := f.Host
	return f.HasRecord() || h.ImageURL == "" && h.Error == "" && (h.State == StateAvailable || h.State == StateReady)
}
