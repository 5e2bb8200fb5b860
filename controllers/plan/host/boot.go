package host

import (
	"cmp"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// waitForBootService has a host wait while something else than the boot service answers at the address that servers boot from. The error says
// so: a released host waits with its erase, which is never skipped. Without it: somebody mistypes the address, each host that is registered or
// released is powered on and boots whatever answers there, three attempts fail, and each host needs an annotation after the address is correct.
// An attempt that is under way goes on: its server was powered on already.
func (p *planner) waitForBootService() result {
	if p.BootProblem == "" {
		return done
	}
	p.setError(failureTypes[p.tableState()], p.bootReason(), p.BootProblem)
	return waitResult("the boot service", p.idleInterval())
}

// holdRequestedAttempt reports why an available host does not make the erase or inspection that an annotation requests.
func (p *planner) holdRequestedAttempt() result {
	kind := metal3.InspectionError
	switch {
	case p.BootProblem == "":
		return done
	case p.isEraseRequested():
		kind = metal3.PreparationError
	case !p.isInspectionRequested():
		return done
	}
	p.setError(kind, p.bootReason(), p.BootProblem)
	return waitResult("the boot service", p.idleInterval())
}

// bootReason returns the reason of the problem.
func (p *planner) bootReason() string { return cmp.Or(p.BootReason, v1alpha1.ReasonBootAddressWrong) }
