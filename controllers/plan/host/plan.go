package host

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// planner is a decision in the making.
type planner struct {
	Facts
	d Decision
	// changing is the power transition that was asked for, recorded instead of the state seen.
	changing hardware.PowerState
}

// Plan decides.
func Plan(f Facts) Decision {
	p := &planner{Facts: f, d: Decision{Status: f.Host.Status, Record: *f.Record.DeepCopy()}}
	switch {
	case f.Host.Paused:
		return p.d
	case f.Host.Detached:
		p.detached()
	default:
		p.adopt()
		p.settle()
		p.overdue()
		p.clearError()
		p.decide()
		p.recordPower()
	}
	p.report()
	return p.d
}

// Observes says whether Plan wants the hardware to be looked at: not while a person keeps us away from it.
func (h Host) Observes() bool { return !h.Paused && !h.Detached }

// detached leaves the hardware alone and shows what was seen last.
func (p *planner) detached() {
	if p.Host.Deleting {
		p.gone()
		return
	}
	p.d.Status.OperationalStatus = OperationalDetached
}

func (p *planner) decide() {
	if p.Host.Deleting && !p.Host.Claimed {
		p.remove()
		return
	}
	if p.Problem == nil {
		p.state()
		return
	}
	if p.running() && p.Observed != nil {
		// An installer goes by its agent's word and its own time-outs even while the BMC is silent.
		p.state()
	}
	p.problem()
}

func (p *planner) state() {
	switch p.d.Status.State {
	case StateNone, StateRegistering:
		p.register()
	case StateInspecting:
		p.inspect()
	case StateAvailable, "ready":
		p.available()
	case StatePreparing:
		p.prepare()
	case StateProvisioning:
		p.provision()
	case StateProvisioned:
		p.provisioned()
	case StateExternallyProvisioned:
		p.external()
	case StateDeprovisioning:
		p.deprovision()
	default:
		// A state of another system: what is on the disks is unknown, and it has just been recorded so.
		p.free()
	}
}

// adopt recognises a host with a past that its record does not know.
func (p *planner) adopt() {
	if p.d.Record.Power != nil || !established(p.Host.Status.State) {
		return
	}
	p.d.Record.LastTenant = UnknownTenant
	if p.Host.Status.State == StateProvisioned && p.Spec.Tenant != "" {
		p.d.Record.LastTenant = p.Spec.Tenant
	}
}

func established(s State) bool {
	return s != StateNone && s != StateRegistering && s != StateInspecting
}

// clean says whether the disks may be given to somebody.
func (p *planner) clean() bool {
	r := p.d.Record
	return r.Installed == nil && (r.LastTenant == "" || r.Erased != nil)
}

// asked says whether a Machine that has this host wants an image on it.
func (p *planner) asked() bool { return p.claimed() && p.Host.HasImage && p.Spec.Image != nil }

// claimed says whether consumerRef and record name the same Machine.
func (p *planner) claimed() bool {
	return p.Host.Claimed && p.Spec.Machine != nil && p.Host.ConsumerUID == string(p.Spec.Machine.UID)
}

// problem handles a BMC that cannot be read.
func (p *planner) problem() {
	p.d.Requeue = p.Timeouts.RetryBase
	kind := PowerManagementError
	switch p.d.Status.State {
	case StateNone, StateRegistering:
		p.d.Status.State = StateRegistering
		p.fail(RegistrationError, p.Problem.Reason, p.Problem.Message)
		return
	case StateInspecting:
		kind = InspectionError
	}
	if p.running() {
		p.d.Requeue = 5 * p.Timeouts.Poll
	}
	since := p.Now
	if power := p.Record.Power; power != nil && power.State != string(hardware.PowerOn) && power.State != string(hardware.PowerOff) {
		since = power.ObservedAt.Time
	}
	if left := p.Timeouts.BMCGrace - p.Now.Sub(since); left > 0 {
		was := p.Host.Status
		p.d.Status.OperationalStatus, p.d.Status.ErrorType, p.d.Status.ErrorMessage = was.OperationalStatus, was.ErrorType, was.ErrorMessage
		p.d.Record.Error = p.Record.Error
		p.d.Requeue = min(p.d.Requeue, left)
		return
	}
	p.fail(kind, p.Problem.Reason, p.Problem.Message)
}

// to changes the state; the next Plan, at once, acts on it.
func (p *planner) to(s State) {
	p.d.Status.State = s
	p.d.Requeue = time.Millisecond
}

// free makes a clean host available and sends any other through deprovisioning.
func (p *planner) free() {
	if p.clean() {
		p.to(StateAvailable)
		return
	}
	p.to(StateDeprovisioning)
}

func (p *planner) clearError() {
	p.d.Status.OperationalStatus = OperationalOK
	p.d.Status.ErrorType, p.d.Status.ErrorMessage, p.d.Record.Error = NoError, "", nil
}

func (p *planner) fail(kind ErrorType, reason, message string) {
	p.d.Status.OperationalStatus = OperationalError
	message = cut(message, maxError)
	p.d.Status.ErrorType, p.d.Status.ErrorMessage = kind, reason+": "+message
	p.d.Record.Error = &v1alpha1.HostError{Reason: reason, Message: message}
}

// errorReason is the reason of an error; "" when there is none.
func errorReason(e *v1alpha1.HostError) string {
	if e == nil {
		return ""
	}
	return e.Reason
}

// steady is when to look again at a host where nothing runs.
func (p *planner) steady() time.Duration {
	return p.Timeouts.Steady - time.Duration(p.Random*float64(p.Timeouts.Steady)/10)
}

// settling is when to look again at a host that runs what was installed: sooner while it boots for the first time, since a
// power loss then keeps a Machine waiting for its Node.
func (p *planner) settling() time.Duration {
	in := p.d.Record.Installed
	if in == nil || p.Joined || p.Now.Sub(in.At.Time) > firstBoot {
		return p.steady()
	}
	return p.steady() / 10
}

// firstBoot is how long after an installation a server may take to come up: a self-test trains the memory and takes minutes.
const firstBoot = 20 * time.Minute

// recordPower keeps since when the power is as it is, for this generation of the BareMetalHost.
func (p *planner) recordPower() {
	state := hardware.PowerUnknown
	before := p.Record.Power
	switch {
	case p.changing != "":
		state = p.changing
	case p.seen() != hardware.PowerUnknown:
		state = p.seen()
	case before != nil && (before.State == string(hardware.PowerTurningOff) || before.State == string(hardware.PowerTurningOn)):
		state = hardware.PowerState(before.State)
	}
	if seen := p.seen(); seen != hardware.PowerUnknown {
		p.d.Status.PoweredOn = seen != hardware.PowerOff
	}
	if p.powerCanWait(string(state)) {
		return
	}
	next := v1alpha1.HostPower{State: string(state), ObservedGeneration: p.Host.Generation, ObservedAt: metav1.NewMicroTime(p.Now)}
	if before != nil && before.State == next.State && before.ObservedGeneration == next.ObservedGeneration {
		next.ObservedAt = before.ObservedAt
	}
	p.d.Record.Power = &next
}

// claimTime is how long a claim may take from the consumerRef to the image.
const claimTime = 2 * time.Second

// powerCanWait says whether the power is worth no write of its own. An installer switches it as its work needs, and the
// record tells the steps; whoever wants the server off makes a new generation, and gets its answer. A claim is a new
// generation too, and is followed by the image at once; only when it is not, the power is confirmed for it.
func (p *planner) powerCanWait(state string) bool {
	before := p.Record.Power
	switch {
	case before == nil || p.changing != "":
		return false
	case before.ObservedGeneration == p.Host.Generation:
		return p.installerSwitches(before.State)
	case p.Host.HasImage || state != before.State || p.GenerationSeen.IsZero():
		return false
	}
	left := claimTime - p.Now.Sub(p.GenerationSeen)
	if left <= 0 || !p.stays(StateAvailable) {
		return false
	}
	p.d.Requeue = min(cmp.Or(p.d.Requeue, left), left)
	return true
}

// installerSwitches: nothing but the power differs, during an installation.
func (p *planner) installerSwitches(before string) bool {
	settled := before == string(hardware.PowerOn) || before == string(hardware.PowerOff)
	if !settled || p.seen() == hardware.PowerUnknown || !p.running() || !p.stays(StateProvisioning) || !equality.Semantic.DeepEqual(p.Record, p.d.Record) {
		return false
	}
	p.d.Status.PoweredOn = p.Host.Status.PoweredOn
	return true
}

func (p *planner) stays(s State) bool { return p.Host.Status.State == s && p.d.Status.State == s }

// seen is the power as the BMC says now.
func (p *planner) seen() hardware.PowerState {
	if p.Problem != nil || p.Observed == nil || p.Observed.Power == "" {
		return hardware.PowerUnknown
	}
	return p.Observed.Power
}

// report counts errors and makes the events that follow from what changed.
func (p *planner) report() {
	p.reportError()
	if before, after := p.Host.Status.State, p.d.Status.State; after != before && !p.told() {
		p.d.Events = append(p.d.Events, Event{Reason: reasonOf(after), Action: "Serve",
			Message: fmt.Sprintf("the host is %s now, it was %s", named(after), named(before))})
	}
}

// told says whether the beginning or the end of an attempt is told, with which the state changes.
func (p *planner) told() bool {
	return slices.ContainsFunc(p.d.Events, func(e Event) bool {
		return e.Action == string(hardware.OpInstall) || e.Action == string(hardware.OpInspect)
	})
}

func (p *planner) reportError() {
	before, after := p.Host.Status, &p.d.Status
	switch {
	case after.ErrorType == NoError:
		after.ErrorCount = 0
	case after.ErrorType != before.ErrorType || errorReason(p.d.Record.Error) != errorReason(p.Record.Error):
		// The message may change with every look, and is no new error then.
		after.ErrorCount = before.ErrorCount + 1
		p.d.Events = append(p.d.Events, Event{Warning: true, Reason: errorReason(p.d.Record.Error), Action: "Serve", Message: after.ErrorMessage})
	default:
		after.ErrorCount = before.ErrorCount
	}
}

func named(s State) string {
	if s == StateNone {
		return "new"
	}
	return string(s)
}

var stateReasons = map[State]string{
	StateRegistering: "Registering", StateInspecting: "Inspecting", StateAvailable: "Available", StatePreparing: "Preparing",
	StateProvisioning: "Provisioning", StateProvisioned: "Provisioned", StateExternallyProvisioned: "ExternallyProvisioned",
	StateDeprovisioning: "Deprovisioning", StatePoweringOff: "PoweringOff", StateDeleting: "Deleting",
}

func reasonOf(s State) string { return stateReasons[s] }
