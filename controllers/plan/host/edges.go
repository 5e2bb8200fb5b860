package host

import (
	"slices"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// anyState stands for every state but deleting.
	anyState State = "any"
	// foreignState is a state that another system gave the host: what is on the disks is unknown, and was just recorded so.
	foreignState State = "foreign"
	// goneState is where a host's life ends: its finalizer is removed.
	goneState State = "gone"
)

// edge is one way from a state to another.
type edge struct {
	from, to State
	// when says in words what holds decides.
	when  string
	holds func(*planner) bool
	// enter records what the new state stands on; nil: nothing beyond the state itself.
	enter func(*planner)
}

// removal are the ways out of a host that was deleted. They are taken even when its BMC cannot be read, and before all others.
var removal = []edge{
	{StateDeleting, goneState, "deleted, and shown as deleting", (*planner).isShownDeleting, nil},
	{anyState, StateDeleting, "deleted while it is detached: given up as it is", (*planner).isGivenUp, nil},
	{anyState, StateDeleting, "deleted, clean, and never worked on", (*planner).isUntouched, nil},
	{anyState, StateDeprovisioning, "deleted, with work under way or disks that are not clean", (*planner).mustCleanFirst, nil},
	{anyState, StatePoweringOff, "deleted, clean, and worked on before", (*planner).mustPowerOffFirst, nil},
	{StatePoweringOff, StateDeleting, "the power is off, or cannot be switched off", (*planner).isOffAtLast, nil},
}

// edges is the life of a host. The first edge of a state that holds is taken, until none holds.
var edges = []edge{
	{StateRegistering, StateProvisioned, "its status was lost, and it has what its Machine had installed", (*planner).isStillInstalled, nil},
	{StateRegistering, StateExternallyProvisioned, "the BMC answers, and somebody else installs it", (*planner).isExternal, nil},
	{StateRegistering, StateAvailable, "the BMC answers, its hardware is known, and its disks are clean", all((*planner).isKnown, (*planner).isReady), nil},
	{StateRegistering, StateDeprovisioning, "the BMC answers, its hardware is known, and its disks are not clean", (*planner).isKnown, nil},
	{StateRegistering, StateInspecting, "the BMC answers", always, nil},

	{StateInspecting, StateProvisioned, "its status is out of date, and it has what its Machine had installed", (*planner).isStillInstalled, nil},
	{StateInspecting, StateAvailable, "inspected, or not to be inspected, and clean", all((*planner).isInspected, (*planner).isReady), nil},
	{StateInspecting, StateDeprovisioning, "inspected, or not to be inspected, and not clean", (*planner).isInspected, nil},

	{StateAvailable, StateProvisioned, "its status is out of date, and it has what its Machine had installed", (*planner).isStillInstalled, nil},
	{StateAvailable, StateProvisioning, "its Machine asks for an image", (*planner).mustInstall, nil},
	{StateAvailable, StatePreparing, "an erase is asked for by annotation, or under way", (*planner).mustErase, (*planner).enterPreparing},
	{StateAvailable, StateInspecting, "an inspection is asked for by annotation, or under way", (*planner).mustInspect, (*planner).enterInspecting},
	{StateAvailable, StateDeprovisioning, "its disks are not clean", (*planner).isIdleAndDirty, nil},
	{StateAvailable, StateExternallyProvisioned, "somebody else installs it", (*planner).isFreeAndExternal, nil},

	{StatePreparing, StateProvisioned, "its status is out of date, and it has what its Machine had installed", (*planner).isStillInstalled, nil},
	{StatePreparing, StateAvailable, "the erase is proven", all((*planner).isPrepared, (*planner).isReady), (*planner).dropEraseAnnotation},
	{StatePreparing, StateDeprovisioning, "no erase is under way, and its disks are not clean", (*planner).isPrepared, nil},

	{StateProvisioning, StateProvisioned, "the image that its Machine asks for is on the disk", (*planner).isInstalled, nil},
	{StateProvisioning, StateDeprovisioning, "released", all((*planner).isIdle, (*planner).isUnwanted), nil},

	{StateProvisioned, StateDeprovisioning, "released", not((*planner).hasImage), nil},
	{StateProvisioned, StateProvisioning, "its Machine asks for another attempt or image", (*planner).isOutdated, nil},

	{StateExternallyProvisioned, StateDeprovisioning, "nobody else installs it any more", not((*planner).isExternal), (*planner).enterUnknownContent},

	{StateDeprovisioning, StateAvailable, "its disks are clean", all((*planner).isIdle, (*planner).isReady), nil},
	{StateDeprovisioning, StateAvailable, "the power is off, and the policy asks for no erase", (*planner).needsNoErase, (*planner).proveNoErase},

	{StatePoweringOff, StateAvailable, "wanted again, and clean", (*planner).isReady, nil},
	{StatePoweringOff, StateDeprovisioning, "wanted again, and not clean", always, nil},
	{StateDeleting, StateAvailable, "wanted again, and clean", (*planner).isReady, nil},
	{StateDeleting, StateDeprovisioning, "wanted again, and not clean", always, nil},
	{foreignState, StateProvisioned, "it has what its Machine had installed", (*planner).isStillInstalled, nil},
	{foreignState, StateAvailable, "clean", (*planner).isReady, nil},
	{foreignState, StateDeprovisioning, "not clean", always, nil},
}

// tableState is the state of the host as the tables know it.
func (p *planner) tableState() State {
	switch s := p.d.Status.State; s {
	case StateNone:
		return StateRegistering
	case "ready": // Metal3's older word
		return StateAvailable
	case StateRegistering, StateInspecting, StateAvailable, StatePreparing, StateProvisioning, StateProvisioned, StateExternallyProvisioned,
		StateDeprovisioning, StatePoweringOff, StateDeleting:
		return s
	default:
		return foreignState
	}
}

// follow takes edges until none holds, or the host has become available: that is written, with the proof that it stands on, before
// anything else is done with it. No way is longer than the table: a test looks for circles.
func (p *planner) follow() {
	for range edges {
		e := p.nextEdge()
		if e == nil {
			return
		}
		p.d.way = append(p.d.way, e)
		if e.to == goneState {
			p.d.DropFinalizer = true
			return
		}
		if e.enter != nil {
			e.enter(p)
		}
		p.d.Status.State = e.to
		if e.to == StateAvailable {
			return
		}
	}
}

// nextEdge is the first edge that holds; nil when none does.
func (p *planner) nextEdge() *edge {
	from := p.tableState()
	leads := func(e edge) bool { return e.leadsFrom(from) && e.holds(p) }
	if i := slices.IndexFunc(removal, leads); i >= 0 {
		return &removal[i]
	}
	if isLeaving := from == StateDeleting || from == StatePoweringOff; !p.canWork() || isLeaving && p.isDeleted() {
		return nil
	}
	if i := slices.IndexFunc(edges, leads); i >= 0 {
		return &edges[i]
	}
	return nil
}

// leadsFrom says whether the edge is one of the state's.
func (e edge) leadsFrom(from State) bool {
	return e.from == from || e.from == anyState && from != StateDeleting && from != e.to
}

func always(*planner) bool { return true }

// all holds when every condition does.
func all(conditions ...func(*planner) bool) func(*planner) bool {
	return func(p *planner) bool {
		return !slices.ContainsFunc(conditions, func(holds func(*planner) bool) bool { return !holds(p) })
	}
}

func not(holds func(*planner) bool) func(*planner) bool {
	return func(p *planner) bool { return !holds(p) }
}

// canWork says whether anything may be asked of the hardware. An installer goes by its agent's word and its own time-outs even
// while the BMC is silent.
func (p *planner) canWork() bool {
	return p.Host.Observes() && (p.Problem == nil || p.d.Record.Wanted.IsOpen() && p.Observed != nil)
}

// isClean says whether the disks may be given to somebody.
func (p *planner) isClean() bool {
	r := p.d.Record
	return r.Installed == nil && (r.LastTenant == "" || r.Erased != nil)
}

// isReady says whether the host may go to the pool: clean, and without an erase that was begun and not brought to its end.
func (p *planner) isReady() bool { return p.isClean() && !p.isEraseBegun() }

func (p *planner) isIdle() bool         { return !p.d.Record.Wanted.IsOpen() }
func (p *planner) isIdleAndClean() bool { return p.isIdle() && p.isClean() }
func (p *planner) isIdleAndDirty() bool { return p.isIdle() && !p.isClean() }

// isDeleted says whether the host is to go: a Machine that has it keeps it.
func (p *planner) isDeleted() bool { return p.Host.Deleting && !p.Host.Claimed }
func (p *planner) isGivenUp() bool { return p.Host.Deleting && p.Host.Detached }
func (p *planner) isShownDeleting() bool {
	return (p.isDeleted() || p.isGivenUp()) && p.Host.Status.State == StateDeleting
}
func (p *planner) isUntouched() bool {
	return p.isDeleted() && p.d.Record.Wanted == nil && p.isClean()
}
func (p *planner) mustCleanFirst() bool {
	return p.isDeleted() && !p.isGivenUp() && !p.isIdleAndClean()
}
func (p *planner) mustPowerOffFirst() bool {
	return p.isDeleted() && !p.isGivenUp() && p.isIdleAndClean() && p.d.Record.Wanted != nil
}

// isOffAtLast says whether a clean host may go. A server that nobody reaches, or that ignores its power-off, needs no care of ours.
func (p *planner) isOffAtLast() bool {
	return p.isDeleted() && p.isIdleAndClean() &&
		(p.Problem != nil || p.seenPower() == hardware.PowerOff || errorReason(p.Record.Error) == string(hardware.ReasonPowerOffIgnored))
}

func (p *planner) isExternal() bool { return p.Host.ExternallyProvisioned }
func (p *planner) isKnown() bool    { return p.Host.InspectionDisabled || p.d.Record.Inventory != nil }
func (p *planner) isInspected() bool {
	return p.isIdle() && (p.Host.InspectionDisabled || p.hasSucceeded(inspection()))
}

// isClaimed says whether consumerRef and record name the same Machine.
func (p *planner) isClaimed() bool {
	return p.Host.Claimed && p.Spec.Machine != nil && p.Host.ConsumerUID == string(p.Spec.Machine.UID)
}

// isAsked says whether a Machine that has this host wants an image on it.
func (p *planner) isAsked() bool { return p.isClaimed() && p.Host.HasImage && p.Spec.Image != nil }

// isFree says whether nobody wants anything of the host but, perhaps, by annotation.
func (p *planner) isFree() bool {
	return !p.Host.Claimed && !p.Host.ExternallyProvisioned && !p.Host.HasImage
}
func (p *planner) isFreeAndExternal() bool {
	return p.isIdleAndClean() && !p.Host.Claimed && p.Host.ExternallyProvisioned
}

func (p *planner) mustInstall() bool {
	return p.isAsked() && p.Host.Online && (p.isIdleAndClean() || !p.isIdle() && p.isWanted(p.installation()))
}

func (p *planner) mustErase() bool {
	mode := v1alpha1.EraseMode(p.Host.Erase)
	return p.isUnderWay(hardware.OpErase) || p.isIdleAndClean() && p.isFree() && (mode == v1alpha1.EraseMetadata || mode == v1alpha1.EraseFull)
}

func (p *planner) mustInspect() bool {
	return p.isUnderWay(hardware.OpInspect) ||
		p.isIdleAndClean() && p.isFree() && p.Host.Erase == "" && p.Host.InspectionAsked && !p.Host.InspectionDisabled
}

func (p *planner) isUnderWay(op hardware.Operation) bool {
	return !p.isIdle() && p.d.Record.Wanted.Operation == string(op)
}

// enterPreparing begins the erase that an annotation asks for. One that is under way was recorded before its state was.
func (p *planner) enterPreparing() {
	if p.isIdle() {
		p.begin(erasure(v1alpha1.EraseMode(p.Host.Erase)))
	}
}

func (p *planner) enterInspecting() {
	if p.isIdle() {
		p.begin(inspection())
		p.d.DropAnnotations = []Annotation{AnnotationInspect}
	}
}

// isPrepared says whether no erase is to be brought to its end.
func (p *planner) isPrepared() bool {
	w := p.d.Record.Wanted
	return p.isIdle() && (w == nil || w.Operation != string(hardware.OpErase) || p.hasSucceeded(erasure(w.Erase)))
}

// dropEraseAnnotation drops the annotation when the erase that has succeeded is at least as strong as it asks. It may have been changed
// while a weaker one ran, or ask for a mode that is not known.
func (p *planner) dropEraseAnnotation() {
	asked, isKnown := strength[v1alpha1.EraseMode(p.Host.Erase)]
	if w := p.d.Record.Wanted; isKnown && w != nil && w.Operation == string(hardware.OpErase) && strength[w.Erase] >= asked {
		p.d.DropAnnotations = []Annotation{AnnotationErase}
	}
}

func (p *planner) isInstalled() bool {
	return p.isAsked() && p.Host.Online && p.hasSucceeded(p.installation())
}

// isStillInstalled says whether a Machine has the host and runs on what was installed for it, whatever the state says. Without this a
// host whose BareMetalHost.status was lost, or restored from a backup, would be erased under its Machine. Where an erase was begun
// nothing is sure to be left.
func (p *planner) isStillInstalled() bool {
	in := p.d.Record.Installed
	return p.isAsked() && p.isIdle() && !p.isEraseBegun() && in != nil && in.MachineUID == p.Spec.Machine.UID
}

func (p *planner) hasImage() bool { return p.Host.HasImage }

// isUnwanted says whether nobody wants what is being installed: the host was released, or its image was never meant.
func (p *planner) isUnwanted() bool {
	return !p.Host.HasImage || !p.Host.Claimed || p.Spec.Machine == nil
}

// isOutdated says whether the Machine asks for something else than is installed: in place, without an erase, since the disks stay
// with the Machine.
func (p *planner) isOutdated() bool {
	in := p.d.Record.Installed
	return p.isClaimed() && p.Spec.Image != nil && p.Host.Online &&
		(in == nil || in.MachineUID != p.Spec.Machine.UID || in.Attempt != p.Spec.Attempt || in.Checksum != p.Spec.Image.Checksum)
}

func (p *planner) enterUnknownContent() {
	p.d.Record.LastTenant, p.d.Record.Erased = UnknownTenant, nil
}

// isEraseBegun says whether an erase has been tried since the last installation and has not succeeded.
func (p *planner) isEraseBegun() bool {
	w := p.d.Record.Wanted
	return w != nil && w.Operation == string(hardware.OpErase) && w.Outcome != v1alpha1.AttemptSucceeded
}

func (p *planner) needsNoErase() bool {
	return p.isIdleAndDirty() && !p.isEraseBegun() && p.seenPower() == hardware.PowerOff && p.eraseMode() == v1alpha1.EraseNone
}

// proveNoErase leaves the decision not to erase as a proof of its own.
func (p *planner) proveNoErase() {
	r := &p.d.Record
	number := int64(0)
	if r.Wanted != nil {
		number = r.Wanted.Number
	}
	r.Erased = &v1alpha1.EraseEvidence{Mode: v1alpha1.EraseNone, Attempt: number, At: microTime(p.Now), Tenant: r.LastTenant}
	r.Installed, r.Failures = nil, 0
}

// steady is when to look again at a host where nothing runs.
func (p *planner) steady() time.Duration {
	return p.Timeouts.Steady - time.Duration(p.Random*float64(p.Timeouts.Steady)/10)
}
