package host

import (
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestTheConfigDriveIsAwaitedFromTheBeginningByAnInstallerThatNeedsIt(t *testing.T) {
	for _, needs := range []bool{false, true} {
		p := &planner{Facts: Facts{NeedsConfigDrive: needs}}
		p.begin(v1alpha1.WantedAttempt{Operation: string(hardware.OpInstall)})
		if got := p.d.Record.Wanted.ConfigDriveAwaitedAt != nil; got != needs {
			t.Errorf("needs %t, awaited %t", needs, got)
		}
		p.begin(v1alpha1.WantedAttempt{Operation: string(hardware.OpErase)})
		if p.d.Record.Wanted.ConfigDriveAwaitedAt != nil {
			t.Error("an erase needs no config drive")
		}
	}
}

func TestAnAttemptsNumberIsAboveEveryNumberThatIsKnown(t *testing.T) {
	for _, c := range []struct {
		name                     string
		wanted, stored, observed int64
		want                     int64
	}{
		{"none", 0, 0, 0, 1},
		{"an attempt that has not begun", 7, 0, 0, 8},
		{"an attempt whose progress is stored", 7, 6, 0, 8},
		{"a stored progress without its attempt", 0, 9, 0, 10},
		{"an installer that knows a later attempt", 7, 6, 12, 13},
		{"an installer that knows an earlier attempt", 7, 6, 5, 8},
	} {
		p := &planner{}
		if c.wanted > 0 {
			p.d.Record.Wanted = &v1alpha1.WantedAttempt{Number: c.wanted}
		}
		if c.stored > 0 {
			p.d.Record.Attempt = &v1alpha1.HostAttempt{Number: c.stored}
		}
		if c.observed > 0 {
			p.Observed = &hardware.Observation{Attempt: &hardware.AttemptStatus{Number: c.observed}}
		}
		if got := p.nextAttemptNumber(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
