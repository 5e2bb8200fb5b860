package host

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// openRecord is a record with the open attempt number 4.
func openRecord(op hardware.Operation) v1alpha1.HostRecordStatus {
	return v1alpha1.HostRecordStatus{
		LastTenant: "team/research", Installed: &v1alpha1.HostInstalled{MachineUID: "old"},
		Wanted: &v1alpha1.WantedAttempt{
			Number: 4, Operation: string(op), MachineUID: "m1", MachineAttempt: 2, Erase: v1alpha1.EraseFull,
			Image: &v1alpha1.ExactImage{Checksum: "sha256:aa"}, Since: metav1.NewMicroTime(noon), Deadline: metav1.NewMicroTime(noon.Add(time.Hour)),
		},
	}
}

func observed(power hardware.PowerState, number int64, state hardware.AttemptState, reason hardware.Reason) *hardware.Observation {
	return &hardware.Observation{Power: power, Attempt: &hardware.AttemptStatus{
		Number: number, State: state, Step: hardware.StepWriting, Reason: reason, Message: strings.Repeat("é", 3000),
	}}
}

func TestAnOpenAttemptIsNotConcluded(t *testing.T) {
	on := hardware.PowerOn
	for name, f := range map[string]Facts{
		"the installer was not asked":               {Clock: watched.Clock{Now: noon}},
		"it has no attempt":                         {Clock: watched.Clock{Now: noon}, Observed: &hardware.Observation{}},
		"it has an earlier attempt":                 {Clock: watched.Clock{Now: noon}, Observed: observed(on, 3, hardware.AttemptFailed, hardware.ReasonDiskError)},
		"it runs":                                   {Clock: watched.Clock{Now: noon}, Observed: observed(on, 4, hardware.AttemptRunning, "")},
		"it runs, and its installer may end it yet": {Clock: watched.Clock{Now: noon.Add(time.Hour + time.Minute)}, Timeouts: Timeouts{BMCGrace: 2 * time.Minute}, Observed: observed(on, 4, hardware.AttemptRunning, "")},
		"an erase without its power-off":            {Clock: watched.Clock{Now: noon}, Observed: observed(on, 4, hardware.AttemptSucceeded, "")},
		"the same, long after the deadline":         {Clock: watched.Clock{Now: noon.Add(24 * time.Hour)}, Observed: observed(hardware.PowerUnknown, 4, hardware.AttemptSucceeded, "")},
	} {
		r := openRecord(hardware.OpErase)
		if f.recordOutcome(&r); !equality.Semantic.DeepEqual(r, openRecord(hardware.OpErase)) {
			t.Errorf("%s: %+v", name, r.Wanted)
		}
	}
	none := v1alpha1.HostRecordStatus{}
	if (Facts{Clock: watched.Clock{Now: noon}, Observed: observed(on, 0, hardware.AttemptFailed, "")}).recordOutcome(&none); none.Failures != 0 {
		t.Error("a failure was counted without an attempt")
	}
}

func TestAnOutcomeIsWrittenOnceWithAllThatFollows(t *testing.T) {
	on := hardware.PowerOn
	erased := Facts{Clock: watched.Clock{Now: noon}, Observed: observed(hardware.PowerOff, 4, hardware.AttemptSucceeded, "")}
	r := openRecord(hardware.OpErase)
	erased.recordOutcome(&r)
	if e := r.Erased; r.Wanted.Outcome != v1alpha1.AttemptSucceeded || e == nil || e.Mode != v1alpha1.EraseFull || e.Attempt != 4 || e.Tenant != "team/research" || r.Installed != nil {
		t.Errorf("erased: %+v, %+v", r.Wanted, r)
	}
	r = openRecord(hardware.OpInstall)
	r.Failures = 2
	Facts{Clock: watched.Clock{Now: noon}, Observed: observed(on, 4, hardware.AttemptSucceeded, ""), Spec: v1alpha1.HostRecordSpec{
		Machine: &v1alpha1.MachineReference{UID: "m1"}, Attempt: 2, Revision: "r2"}}.recordOutcome(&r)
	if i := r.Installed; i == nil || i.MachineUID != "m1" || i.Attempt != 2 || i.Revision != "r2" || i.Checksum != "sha256:aa" || r.Failures != 0 {
		t.Errorf("installed: %+v", r.Installed)
	}
	r = openRecord(hardware.OpInstall)
	failed := Facts{Clock: watched.Clock{Now: noon}, Observed: observed(on, 4, hardware.AttemptFailed, hardware.ReasonDiskError)}
	for range 2 {
		failed.recordOutcome(&r)
	}
	if w := r.Wanted; w.Outcome != v1alpha1.AttemptFailed || w.Step != "Writing" || w.Reason != "DiskError" || len(w.Message) > v1alpha1.MaxAttemptMessage || !utf8.ValidString(w.Message) || r.Failures != 1 {
		t.Errorf("failed: %+v, %d failures", r.Wanted, r.Failures)
	}
	r = openRecord(hardware.OpInstall)
	if (Facts{Clock: watched.Clock{Now: noon}, Observed: observed(on, 4, hardware.AttemptFailed, hardware.ReasonCancelled)}).recordOutcome(&r); r.Failures != 0 || r.Wanted.Reason != "Cancelled" {
		t.Errorf("cancelled: %d failures, %+v", r.Failures, r.Wanted)
	}
}

func TestAnAttemptThatItsInstallerNeverEndsTimesOut(t *testing.T) {
	late := Facts{Clock: watched.Clock{Now: noon.Add(time.Hour + 3*time.Minute)}, Timeouts: Timeouts{BMCGrace: 2 * time.Minute}, Problem: &Problem{Reason: "BMCUnreachable", Message: "no answer"}}
	r := openRecord(hardware.OpInstall)
	r.Attempt = &v1alpha1.HostAttempt{Number: 4, Step: "Loading"}
	late.recordOutcome(&r)
	if w := r.Wanted; w.Reason != "DeadlineExceeded" || w.Step != "Loading" || w.Message != "the deadline passed at step Loading; BMCUnreachable: no answer" || r.Failures != 1 {
		t.Errorf("timed out: %+v", w)
	}
	r = openRecord(hardware.OpInstall)
	r.Attempt = &v1alpha1.HostAttempt{Number: 3, Step: "Finishing"}
	if late.recordOutcome(&r); r.Wanted.Step != "PoweringOff" {
		t.Errorf("the step is that of an earlier attempt: %+v", r.Wanted)
	}
}
