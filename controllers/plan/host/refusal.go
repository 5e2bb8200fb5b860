package host

import (
	"errors"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Refused is the decision after its action was refused. What a person must mend, or look at, shows at once; everything else is
// asked again, and becomes an error when the attempt's deadline has passed.
func (d Decision) Refused(f Facts, err error) Decision {
	d.Requeue = 5 * f.Timeouts.Poll
	switch hardware.KindOf(err) {
	case hardware.Unauthorized, hardware.Invalid, hardware.Unsupported, hardware.Ignored:
	default:
		return d
	}
	p := &planner{Facts: f, d: d}
	p.fail(errorTypes[d.Action.Kind], ReasonOf(err), refusalMessage(err))
	p.d.Requeue = f.Timeouts.RetryBase
	p.reportError()
	return p.d
}

// refusalMessage is the cause alone where the reason says already what was tried.
func refusalMessage(err error) string {
	var e *hardware.Error
	if errors.As(err, &e) && e.Reason != "" && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

var errorTypes = map[ActionKind]ErrorType{
	ActionInspect: InspectionError, ActionInstall: ProvisioningError, ActionErase: ProvisioningError,
	ActionCancel: PowerManagementError, ActionSetPower: PowerManagementError,
}
