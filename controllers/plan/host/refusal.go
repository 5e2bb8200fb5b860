package host

import (
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Refused is the decision after its action was refused. What a person must mend shows at once; everything else is asked
// again, and becomes an error when the attempt's deadline or the time for a change of power has passed.
func (d Decision) Refused(f Facts, kind hardware.Kind, message string) Decision {
	d.Requeue = 5 * f.Timeouts.Poll
	switch kind {
	case hardware.Unauthorized, hardware.Invalid, hardware.Unsupported:
	default:
		return d
	}
	p := &planner{Facts: f, d: d}
	p.fail(errorTypes[d.Action.Kind], ReasonOf(kind), message)
	p.d.Requeue = f.Timeouts.RetryBase
	p.reportError()
	return p.d
}

var errorTypes = map[ActionKind]ErrorType{
	ActionInspect: InspectionError, ActionInstall: ProvisioningError, ActionErase: ProvisioningError,
	ActionCancel: PowerManagementError, ActionSetPower: PowerManagementError,
}
