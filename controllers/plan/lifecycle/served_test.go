package lifecycle

import (
	"maps"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	hostplan "github.com/ingot-dev/ingot/controllers/plan/host"
)

// servedHost is what a BareMetalHost has that a baremetal-operator serves, beside what every host has in a world.
type servedHost struct {
	isServed bool
	// annotations are those about tenants and cleaning, cleaning is spec.automatedCleaningMode.
	annotations map[string]string
	cleaning    metal3.AutomatedCleaningMode
	// userData is the attempt in the name of the claim Secret that spec names.
	userData int64
	// secretAttempt is the annotation ingot.dev/secret-attempt.
	secretAttempt int64
	// installedURL is status.provisioning.image.url.
	installedURL string
	// hasConditions: this release of the operator writes conditions, which have observed that generation.
	hasConditions bool
	observed      int64
	// isUnmanageable: the condition Manageable is false, because the power is not known.
	isUnmanageable bool
	// isAskedOff and isRebooted are the annotations ingot.dev/power-off and reboot.metal3.io, isInspected is inspect.metal3.io.
	isAskedOff, isRebooted, isInspected bool
	// isOffOfRunning: the status said on when the power-off was requested.
	isOffOfRunning bool
}

// operator is what a baremetal-operator keeps of a host in its memory.
type operator struct {
	isStopped, isCutOff bool
	failures            map[string]int // by URL
}

// ironicState is what the service behind a baremetal-operator has done with a server; empty: it can be installed.
type ironicState string

const (
	ironicInspecting  ironicState = "inspecting"
	ironicInspected   ironicState = "inspected"
	ironicDeploying   ironicState = "deploying"
	ironicActive      ironicState = "active"
	ironicFailed      ironicState = "deploy failed"
	ironicCleaning    ironicState = "cleaning"
	ironicCleanFailed ironicState = "clean failed"
)

// isBusy: a ramdisk runs, and nobody else changes the power.
func (i ironicState) isBusy() bool {
	return i == ironicInspecting || i == ironicDeploying || i == ironicCleaning
}

// retries is how often an installation is tried.
const retries = 3

// operate is one look of a baremetal-operator at a host. It sees what its cache has, and writes under the version that it saw.
func (w *world) operate(h *host) {
	seen := h.cached
	if h.operator.isStopped || seen.paused {
		return
	}
	next := seen
	w.lookAt(h, &next)
	if next.hasConditions {
		next.observed, next.isUnmanageable = seen.generation, h.hw.isDark
	}
	w.logf("%s operator: %s on=%t %s -> %s on=%t %s; seen online=%t image=%q reboot=%t gen %d; really %q on=%t", h.name, seen.status.State, seen.status.PoweredOn, seen.status.ErrorType,
		next.status.State, next.status.PoweredOn, next.status.ErrorType, seen.online, seen.imageURL, seen.isRebooted, seen.generation, h.hw.ironic, h.hw.on)
	w.try(func() bool {
		if h.live.rv != seen.rv {
			return false
		}
		before := h.live
		h.live.status, h.live.installedURL, h.live.observed, h.live.isUnmanageable = next.status, next.installedURL, next.observed, next.isUnmanageable
		h.live.isRebooted, h.live.isInspected = next.isRebooted, next.isInspected
		if before.status != next.status || before.installedURL != next.installedURL || before.observed != next.observed || before.isUnmanageable != next.isUnmanageable ||
			before.isRebooted != next.isRebooted || before.isInspected != next.isInspected {
			h.live.rv++
		}
		return true
	})
}

// lookAt does what the state of the host asks for and changes in n what is to be written.
func (w *world) lookAt(h *host, n *bmh) {
	s := &n.status
	isWanted := n.imageURL != "" && n.online && n.installedURL == ""
	switch {
	case h.operator.isCutOff || w.happens(8):
		fail(s, metal3.RegistrationError)
		return
	case s.ErrorType == metal3.RegistrationError, s.OperationalStatus == metal3.OperationalStatusDelayed:
		clearError(s)
		return
	case isWanted && s.State == metal3.StateAvailable && w.happens(10):
		s.OperationalStatus = metal3.OperationalStatusDelayed
		return
	}
	switch s.State {
	case metal3.StateAvailable:
		w.manageAvailable(h, n, isWanted)
	case metal3.StateInspecting:
		w.inspect(h, n)
	case metal3.StatePreparing:
		s.State = metal3.StateAvailable
	case metal3.StateProvisioning:
		if s.ErrorType != "" || n.hasOtherImage() {
			s.State = metal3.StateDeprovisioning
			return
		}
		w.deploy(h, n)
	case metal3.StateProvisioned:
		if n.hasOtherImage() {
			s.State = metal3.StateDeprovisioning
			return
		}
		w.managePower(h, n)
	case metal3.StateDeprovisioning:
		w.clean(h, n)
	}
}

func (n *bmh) hasOtherImage() bool {
	return n.imageURL == "" || n.installedURL != "" && n.imageURL != n.installedURL
}

func fail(s *hostplan.Status, kind metal3.ErrorType) {
	s.ErrorType, s.ErrorMessage, s.OperationalStatus = kind, "it failed", metal3.OperationalStatusError
	s.ErrorCount = min(s.ErrorCount+1, 9)
}

func clearError(s *hostplan.Status) {
	s.ErrorType, s.ErrorMessage, s.OperationalStatus = "", "", metal3.OperationalStatusOK
}

func (w *world) manageAvailable(h *host, n *bmh, isWanted bool) {
	if n.imageURL == "" {
		clear(h.operator.failures)
	}
	switch {
	case n.isInspected:
		n.status.State = metal3.StateInspecting
	case isWanted && h.operator.failures[n.imageURL] >= retries:
	case isWanted:
		clearError(&n.status)
		n.status.State = metal3.StateProvisioning
	default:
		w.managePower(h, n)
	}
}

func (w *world) inspect(h *host, n *bmh) {
	switch {
	case n.isInspected && h.hw.ironic == "":
		w.power(h, false)
		h.hw.ironic, h.hw.on = ironicInspecting, true
	case h.hw.ironic == ironicInspected:
		n.isInspected, n.status.State, h.hw.ironic = false, metal3.StatePreparing, ""
	}
}

// managePower looks at the power, and makes it what the spec says when the status has been right.
func (w *world) managePower(h *host, n *bmh) {
	s, on := &n.status, h.hw.on
	if h.hw.isDark {
		on = s.PoweredOn // what is not known changes nothing
	}
	desired := n.online && !(n.isRebooted && s.State == metal3.StateProvisioned)
	switch {
	case on != s.PoweredOn:
		s.PoweredOn = on
		if s.ErrorType == metal3.PowerManagementError {
			clearError(s)
		}
	case !on && n.isRebooted:
		n.isRebooted = false
	case on == desired || h.hw.ironic.isBusy():
	case h.hw.isDark, w.happens(10):
		fail(s, metal3.PowerManagementError)
	default:
		w.power(h, desired)
		clearError(s)
	}
}

// deploy begins an installation, or sees what has become of it. Without the Secret it is tried again, and nothing says so.
func (w *world) deploy(h *host, n *bmh) {
	switch h.hw.ironic {
	case "", ironicInspected:
		if s := w.secrets[secretKey(h, n.userData)]; s != nil && s.attempt == n.userData && !h.hw.isDark && !w.happens(40) {
			w.beginDeploy(h, n, s)
		}
	case ironicFailed:
		if h.operator.failures == nil {
			h.operator.failures = map[string]int{}
		}
		h.operator.failures[n.imageURL]++
		fail(&n.status, metal3.ProvisioningError)
	case ironicActive:
		if n.isRebooted {
			n.isRebooted = false
			return
		}
		clear(h.operator.failures)
		n.installedURL, n.status.ErrorCount, n.status.State = n.imageURL, 0, metal3.StateProvisioned
	default:
		clearError(&n.status)
	}
}

func (w *world) beginDeploy(h *host, n *bmh, s *secret) {
	w.checkTouch(h)
	m := w.machines[slices.IndexFunc(w.machines, func(m *machine) bool { return m.live.UID == s.machine })]
	w.power(h, false)
	h.hw.ironic, h.hw.on = ironicDeploying, true
	h.hw.disk, h.hw.credential, h.hw.leftBy = disk{}, false, tenantOf(m.live.Machine)
	h.hw.work = disk{machine: s.machine, name: m.live.Name, attempt: s.attempt, revision: s.revision, image: n.imageURL, tokenID: s.tokenID}
}

// clean begins to remove what is installed, or sees whether that has ended.
func (w *world) clean(h *host, n *bmh) {
	switch h.hw.ironic {
	case ironicCleaning:
		if h.operator.failures[n.imageURL] < retries {
			clearError(&n.status)
		}
	case "", ironicInspected:
		if n.isRebooted {
			n.isRebooted = false
			return
		}
		n.installedURL, n.status.ErrorCount, n.status.State = "", 0, metal3.StateAvailable
	case ironicInspecting:
	default:
		if h.hw.ironic == ironicCleanFailed {
			fail(&n.status, metal3.ProvisioningError)
		}
		if n.installedURL != "" && h.hw.booted {
			w.violated("fence: %s runs while its image is removed", h.name)
		}
		if h.hw.isDark {
			fail(&n.status, metal3.ProvisioningError)
			return
		}
		w.power(h, false)
		h.hw.ironic, h.hw.cleaning = ironicCleaning, n.cleaning
	}
}

// runServed lets the server of such a host go on by itself.
func (w *world) runServed(h *host) {
	s := &h.hw
	isCut := s.ironic.isBusy() && s.ironic != ironicCleaning && !s.on
	switch {
	case isCut && s.ironic == ironicDeploying, s.ironic == ironicDeploying && w.happens(15):
		w.power(h, false)
		s.ironic = ironicFailed
	case s.ironic == ironicDeploying:
		w.power(h, false)
		s.disk, s.on, s.ironic = s.work, true, ironicActive
		s.disk.complete = true
	case s.ironic == ironicCleaning && w.happens(15):
		s.ironic = ironicCleanFailed
	case s.ironic == ironicCleaning:
		if s.cleaning != metal3.CleaningModeDisabled {
			s.disk, s.leftBy, s.credential = disk{}, "", false
		}
		w.power(h, false)
		s.ironic = ""
	case s.ironic == ironicInspecting:
		w.power(h, false)
		s.ironic = ironicInspected
	default:
		w.runDisk(h)
	}
}

// disturbServed is what the world does to a baremetal-operator and its hosts.
func (w *world) disturbServed() {
	h := w.hosts[w.rng.IntN(len(w.hosts))]
	what := w.rng.IntN(10)
	w.logf("disturbance %d of the operator of %s", what, h.name)
	switch what {
	case 0:
		h.operator.isStopped = !h.operator.isStopped
	case 1: // it starts again and has forgotten
		h.operator = operator{isCutOff: h.operator.isCutOff}
	case 2:
		h.operator.isCutOff = !h.operator.isCutOff
	case 3: // somebody has it inspected again
		if h.live.status.State == metal3.StateAvailable {
			h.live.isInspected = true
			h.live.rv++
		}
	case 4: // somebody changes how it is cleaned
		if isReleased := h.live.consumer != "" && h.live.imageURL == ""; isReleased || w.rng.IntN(4) == 0 {
			h.live.cleaning = []metal3.AutomatedCleaningMode{metal3.CleaningModeDisabled, metal3.CleaningModeMetadata}[w.rng.IntN(2)]
			h.live.generation++
			h.live.rv++
		}
	case 9: // somebody applies a manifest with online true while the host has no image
		if h.live.consumer != "" && h.live.imageURL == "" && !h.live.online {
			h.live.online = true
			h.live.generation++
			h.live.rv++
		}
	case 8: // the BMC goes dark, or is back: nobody knows the power, and nobody changes it
		h.hw.isDark = !h.hw.isDark
	case 5: // a Machine is given up, or gets another revision, while it is installed
		for _, m := range w.machines {
			if s := m.live.Status; s.Phase == v1alpha1.MachineProvisioning && s.HostRef.Name == h.name {
				w.giveUp(m)
			}
		}
	default: // the server stops by itself, or somebody presses its button while its image is on its disk
		if h.live.online && h.live.imageURL != "" && h.hw.ironic == ironicActive && h.live.status.State == metal3.StateProvisioned {
			w.power(h, !h.hw.on)
		}
	}
}

func (w *world) giveUp(m *machine) {
	if w.rng.IntN(2) == 0 {
		w.delete(m)
		return
	}
	w.setRevision(m, revisionNames[w.rng.IntN(len(revisionNames))])
}

// edit changes the annotations and the cleaning mode as the shell does in its one write of an action.
func (n *bmh) edit(change func(*metal3.BareMetalHost)) {
	h := &metal3.BareMetalHost{}
	h.Annotations, h.Spec.AutomatedCleaningMode, h.Status.Provisioning.State, h.Generation, h.Spec.Online = maps.Clone(n.annotations), n.cleaning, n.status.State, n.generation, n.online
	change(h)
	n.annotations, n.cleaning = h.Annotations, h.Spec.AutomatedCleaningMode
}

func tenantOf(m Machine) string { return m.Namespace + "/" + m.Spec.TenantClusterRef.Name }

// hasErased: an annotation says that the disk was erased since it was used last.
func (n *bmh) hasErased() bool {
	return n.annotations[v1alpha1.AnnotationLastErase] == string(v1alpha1.EraseMetadata)
}
