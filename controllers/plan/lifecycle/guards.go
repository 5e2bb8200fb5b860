package lifecycle

import (
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// guards are the questions that safety hangs on, each in one place. Tests take one away and see the harm.
type guards struct {
	// hostIsMine: nothing is asked of a host, and nothing concluded from it, without.
	hostIsMine func(Facts) bool
	// hostIsFit: a host is claimed only while placement finds it fit.
	hostIsFit func(Facts) bool
	// imageIsOnDisk: the host reports this attempt's image, written and verified.
	imageIsOnDisk func(Facts) bool
	// powerIsOff: the BMC confirmed the power-off after it was asked for.
	powerIsOff func(Facts) bool
	// nodeIsGone: the Machine's Node object is known not to exist.
	nodeIsGone func(Facts) bool
	// hostIsBack: the host is available again, erased as was asked.
	hostIsBack func(Facts) bool
	// verdictHolds: the verdict passed and speaks of this Node, this boot and this revision.
	verdictHolds func(Facts) bool
	// tokenMayLive: a bootstrap token is needed, and may be made or renewed.
	tokenMayLive func(Facts) bool
	// mayRoll: a Machine with another spec.revision than installed is drained and installed again.
	mayRoll func(Facts) bool
}

func realGuards() guards {
	return guards{
		hostIsMine: hostIsMine, hostIsFit: hostIsFit, imageIsOnDisk: imageIsOnDisk, powerIsOff: powerIsOff,
		nodeIsGone: nodeIsGone, hostIsBack: hostIsBack, verdictHolds: verdictHolds, tokenMayLive: tokenMayLive,
		mayRoll: rollsAreOff,
	}
}

// rollsAreOff: a changed spec.revision is shown as UpToDate=False and otherwise ignored until rollouts exist.
func rollsAreOff(Facts) bool { return false }

func revisionDiffers(f Facts) bool {
	return f.Machine.Spec.Revision != "" && f.Machine.Spec.Revision != f.Machine.Status.Revision
}

func hostIsMine(f Facts) bool { return f.Host != nil && f.Host.Consumer == ConsumerMine }

func hostIsFit(f Facts) bool {
	return f.Host != nil && f.Host.Consumer == ConsumerNone && f.Host.Unfit == ""
}

func imageIsOnDisk(f Facts) bool {
	h := f.Host
	if h.State != stateProvisioned || h.Error != "" || !imageRequested(f) {
		return false
	}
	if !f.hasRecord() {
		return h.InstalledURL == h.ImageURL
	}
	return h.Record != nil && h.Record.Status.Installed != nil &&
		h.Record.Status.Installed.MachineUID == f.Machine.UID && h.Record.Status.Installed.Attempt == f.Machine.Status.Attempt
}

// imageRequested: the host was asked for this Machine's image.
func imageRequested(f Facts) bool {
	return f.Host.ImageURL != "" && f.Host.ImageURL == f.Revision.Image.URL && f.Host.Online
}

func powerIsOff(f Facts) bool {
	h := f.Host
	if h == nil || h.Online {
		return false
	}
	if !f.hasRecord() {
		return !h.PoweredOn
	}
	// An older observation may have been made before the power-off was asked for.
	return h.Record != nil && h.Record.Status.Power != nil && h.Record.Status.Power.State == "Off" &&
		h.Record.Status.Power.ObservedGeneration >= h.Generation
}

// hasRecord: the host has a HostRecord, or should have one. The provider may be gone while its hosts are still there.
func (f Facts) hasRecord() bool { return f.Provider.Records || f.Host.Record != nil }

func nodeIsGone(f Facts) bool { return f.Tenant.Reachable && !f.nodeOfMine() }

func hostIsBack(f Facts) bool {
	h := f.Host
	if h.ImageURL != "" || h.Error != "" || (h.State != stateAvailable && h.State != stateReady) {
		return false
	}
	if h.Record == nil {
		return !f.Provider.Records
	}
	r := h.Record.Status
	if r.Attempt != nil && r.Attempt.State == "Running" {
		return false
	}
	return r.Installed == nil && (r.LastTenant == "" || r.Erased != nil)
}

func verdictHolds(f Facts) bool {
	v := f.Machine.Status.Verdict
	return v != nil && v.Result == v1alpha1.CheckPass && v.Admitted && f.Node.Found &&
		v.NodeUID == f.Node.UID && v.BootID == f.Node.BootID && v.Revision == f.Machine.Status.Revision
}

// tokenMayLive: while an installation is on its way to a Node. When Provisioning ran out of time before anything was asked of
// the host, the token is still to be made, or the Machine could never go on.
func tokenMayLive(f Facts) bool {
	if !hostIsMine(f) {
		return false
	}
	switch f.Machine.Status.Phase {
	case v1alpha1.MachineProvisioning:
		return !f.overdue() || !imageRequested(f)
	case v1alpha1.MachineJoining:
		return !f.overdue()
	default:
		return false
	}
}

// overdue: the deadline of the phase has passed.
func (f Facts) overdue() bool {
	d := f.Machine.Status.Deadline
	return d != nil && !f.Now.Before(d.Time)
}

// entered is when the current phase began.
func (f Facts) entered() time.Time {
	if t := f.Machine.Status.Timeline; len(t) > 0 {
		return t[len(t)-1].At.Time
	}
	return f.Machine.Created
}

// drainOver: pods had their time to leave.
func (f Facts) drainOver() bool { return !f.Now.Before(f.entered().Add(f.Timeouts.Draining)) }

// providerID is that of what this attempt installs.
func (m Machine) providerID() string { return v1alpha1.ProviderID(m.UID, m.Status.Attempt) }

// nodeOfMine: the Node is this Machine's, of this attempt or of an earlier one.
func (f Facts) nodeOfMine() bool {
	return f.Node.Found && strings.HasPrefix(f.Node.ProviderID, v1alpha1.ProviderIDPrefix+string(f.Machine.UID)+"/")
}

// nodeOfThisAttempt: the Node was registered by what this attempt installed.
func (f Facts) nodeOfThisAttempt() bool {
	return f.Tenant.Reachable && f.Node.Found && f.Node.ProviderID == f.Machine.providerID()
}

// mayHaveBooted: the installed system may run, or nobody knows.
func (f Facts) mayHaveBooted() bool {
	installing := []string{"registering", "inspecting", "preparing", stateAvailable, stateReady, stateProvisioning}
	return f.nodeOfMine() || !slices.Contains(installing, f.Host.State)
}
