package host

import (
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
)

// isOfUnknownContent reports whether nobody knows what is on the disks, because the record was lost, or another system had the host before.
func (p planner) isOfUnknownContent() bool {
	r := p.d.Record
	return r.LastTenant == unknownTenant && r.Erased == nil && r.Installed == nil
}

// isEraseAskedFor reports whether a person wants the host erased, gone, or released.
func (p planner) isEraseAskedFor() bool {
	isReleased := p.Host.Claimed && p.Host.Release == v1alpha1.ReleaseValue(p.consumerUID())
	return p.Host.Deleting || isReleased || eraseStrength[v1alpha1.EraseMode(p.Host.Erase)] > 0
}

// askAgain is how soon the first answer is there.
const askAgain = time.Second

// waitForGrant lets a host of unknown content alone until it is known to be one of few, unless a person asks for its erase.
//
// Without it: the HostRecords of a hall are lost, or its BareMetalHosts are taken over from another system in one go. All are powered off and erased at once, and
// somebody's nodes ran on them.
func (p *planner) waitForGrant() result {
	if !p.isOfUnknownContent() || p.hasUnfinishedErase() || p.isEraseAskedFor() {
		return done
	}
	p.d.NeedsGrant = true
	switch {
	case p.Grant == nil:
		return waitResult("a grant", askAgain)
	case p.Grant.IsGranted:
		return done
	case p.Grant.Cause != nil:
		// Each of many asks for itself, and each answer counts them all.
		p.setError(metal3.PreparationError, v1alpha1.ReasonManyAtOnce, manyMessage(*p.Grant.Cause))
		return waitResult("a grant", p.idleInterval())
	}
	return waitResult("a grant", min(p.Grant.Wait, p.idleInterval()))
}

// manyMessage says why a host is neither powered off nor erased, and what a person can do.
func manyMessage(c breaker.Cause) string {
	why := fmt.Sprintf("nobody knows what is on the disks of %s: more than come alone (%d within an hour), so none is powered off or erased. "+
		"Is a backup without HostRecords restored, or another system's host taken over?", c.Subject(), c.Limit)
	if !c.Until.IsZero() {
		why = fmt.Sprintf("nobody knows what is on the disks of %s, and %d such were erased within the hour before: it is powered off and erased at %s.", c.Subject(), c.Done, c.Until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s To have it erased now, annotate the BareMetalHost with %s=%s; where something runs that stays, set spec.externallyProvisioned", why, v1alpha1.AnnotationErase, v1alpha1.EraseFull)
}
