package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// draining empties and stops the machine, so that its host can take another image.
func (p *planner) draining() {
	if !p.keepsHost() || !p.f.PowerOffBegun() && p.holdsBack() {
		return
	}
	if p.fence() && !p.f.HostTakesImage() {
		p.takeImageOff()
	}
}

// holdsBack does, while the machine still runs, what comes before its end; it tells whether the roll must not go on now.
func (p *planner) holdsBack() bool {
	if p.f.Token != nil && p.f.Tenant.Reachable {
		// What the earlier attempt brought up joins no more.
		p.do(DeleteToken).TokenID = p.f.Token.ID
		p.d.Again = true
		p.hold("", v1alpha1.ReasonEvicting, "", "the bootstrap token is being deleted")
		return true
	}
	if p.g.calledOff(p.f) {
		p.do(Uncordon).NodeUID = p.f.Node.UID
		p.d.Again = true
		p.hold("", v1alpha1.ReasonEvicting, "", "the roll was called off: Node "+p.f.Machine.Name+" is being uncordoned")
		return true
	}
	if p.f.Next.Name == "" {
		return false
	}
	reason, message := p.g.unsuited(p.f, p.f.Next)
	if reason == "" {
		return false
	}
	p.hold("", reason, "", message+"; the roll waits, and its Node stays cordoned")
	p.after(time.Minute)
	return true
}

// takeImageOff is for hosts without HostRecords: a baremetal-operator installs only on what it has deprovisioned.
func (p *planner) takeImageOff() {
	p.after(hostRound)
	if p.f.Host.ImageURL != "" {
		p.do(Deprovision)
	}
	reason, message := p.hostTrouble()
	if reason == "" {
		reason, message = v1alpha1.ReasonErasing, fmt.Sprintf("host %s is %s; it takes the next image when it is available", p.hostName(), p.f.Host.State)
	}
	p.hold("", reason, "the host to be deprovisioned", message)
}

// eviction says which pods remain. Past its time a roll waits on, and names what does not let them go.
func (p *planner) eviction() {
	pods := podsToLeave(p.f.Node.Pods)
	if p.f.Machine.Status.Phase != v1alpha1.MachineDraining || !p.f.DrainOver() {
		p.after(evictionRound)
		p.hold("", v1alpha1.ReasonEvicting, "", pods)
		return
	}
	p.after(hostRound)
	message := pods
	if b := p.f.Node.Budgets; len(b) > 0 {
		message += "; no eviction is allowed by PodDisruptionBudget " + strings.Join(b[:min(len(b), mostNames)], ", ")
	}
	p.hold("", v1alpha1.ReasonDrainTimedOut, pods, message+
		"; a roll forces no pod: mend what keeps them, delete the pods, or set spec.revision back to "+p.f.Machine.Status.Revision)
}

// mostNames is how many pods, or budgets, a message names at most, so that it stays readable.
const mostNames = 5

func podsToLeave(names []string) string {
	switch n := len(names); {
	case n == 1:
		return "1 pod to leave: " + names[0]
	case n <= mostNames:
		return fmt.Sprintf("%d pods to leave: %s", n, strings.Join(names, ", "))
	default:
		return fmt.Sprintf("%d pods to leave: %s and %d more", n, strings.Join(names[:mostNames], ", "), n-mostNames)
	}
}
