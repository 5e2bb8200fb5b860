package host

import (
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// NeedsGrant reports whether the host is to be powered off and erased although no person has asked for that: nobody knows what is on its disks, because its record
// was lost, or another system had it before.
//
// Without it: the HostRecords of a hall are lost, or its BareMetalHosts are taken over from another system in one go. All are powered off and erased at once, and
// somebody's nodes ran on them.
func (f Facts) NeedsGrant() bool {
	w := f.Record.Wanted
	isBegun := w != nil && w.Operation == string(hardware.OpErase) && w.Outcome != v1alpha1.AttemptSucceeded
	return f.Record.LastTenant == unknownTenant && f.Record.Erased == nil && f.Record.Installed == nil && !isBegun && !f.isAskedFor()
}

// isAskedFor reports whether a person wants the host erased, or gone.
func (f Facts) isAskedFor() bool {
	return f.Host.Deleting || eraseStrength[v1alpha1.EraseMode(f.Host.Erase)] > 0
}

// askAgain is how soon the first answer is there.
const askAgain = time.Second

// waitForGrant lets a host of unknown content alone until it is known to be one of few.
func (p *planner) waitForGrant() result {
	f := p.Facts
	f.Record = p.d.Record
	switch {
	case !f.NeedsGrant() || p.Grant != nil && p.Grant.IsGranted:
		return done
	case p.Grant == nil:
		return waitResult("a grant", askAgain)
	case p.Grant.Cause != nil:
		c := p.Grant.Cause
		p.setError(metal3.PreparationError, v1alpha1.ReasonManyAtOnce, fmt.Sprintf("nobody knows what is on the disks of %s, which is more than come alone (%d within an hour): none is powered off or erased. "+
			"Is a backup without HostRecords restored, or another system's host taken over? Where they may be erased, annotate the BareMetalHosts with %s=%s; where something runs on them that stays, set spec.externallyProvisioned",
			c.Message(), c.Limit, v1alpha1.AnnotationErase, v1alpha1.EraseFull))
	}
	return waitResult("a grant", min(p.Grant.Wait, p.idleInterval()))
}
