package host

import (
	"errors"
	"strings"

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
	p.d.Requeue = f.Timeouts.RetryBase
	reason, message := ReasonOf(err), refusalMessage(err)
	if e := d.Record.Error; e != nil && hardware.KindOf(err) != hardware.Unauthorized {
		// The decision has an error, and has told of it. Were it replaced, the reason would change with every look, each with an
		// event, and nobody would read what an attempt failed of. While a silent BMC is borne with, it is the record's own.
		// A refused login is the exception: the next look must find it as the reason, or it logs in again and is locked out.
		if first, _, _ := strings.Cut(e.Message, besides); e.Reason != reason || !strings.HasPrefix(first, message) {
			p.fail(d.Status.ErrorType, e.Reason, first+besides+reason+": "+message)
		}
		return p.d
	}
	p.fail(errorTypes[d.Action.Kind], reason, message)
	p.reportError()
	return p.d
}

// besides stands before a second error in a message.
const besides = "; besides, "

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
