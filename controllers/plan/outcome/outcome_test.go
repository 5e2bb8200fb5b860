package outcome

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// wanted is a record of which an attempt is wanted, number 4.
func wanted(op hardware.Operation) v1alpha1.HostRecordStatus {
	return v1alpha1.HostRecordStatus{
		LastTenant: "team/research", Installed: &v1alpha1.HostInstalled{MachineUID: "old"},
		Wanted: &v1alpha1.WantedAttempt{
			Number: 4, Operation: string(op), MachineUID: "m1", MachineAttempt: 2, Erase: v1alpha1.EraseFull,
			Image: &v1alpha1.ExactImage{Checksum: "sha256:aa"}, Since: metav1.NewMicroTime(noon), Deadline: metav1.NewMicroTime(noon.Add(time.Hour)),
		},
	}
}

func observed(number int64, state hardware.AttemptState, reason hardware.Reason) *hardware.Observation {
	return &hardware.Observation{Power: hardware.PowerOn, Attempt: &hardware.AttemptStatus{
		Number: number, State: state, Step: hardware.StepWriting, Reason: reason, Message: strings.Repeat("é", 3000),
	}}
}

func TestNothingIsConcludedWhileAnAttemptGoesOn(t *testing.T) {
	for name, f := range map[string]Facts{
		"the installer was not asked":               {Now: noon},
		"it knows no attempt":                       {Now: noon, Observed: &hardware.Observation{}},
		"it speaks of an earlier attempt":           {Now: noon, Observed: observed(3, hardware.AttemptFailed, hardware.ReasonDiskError)},
		"it runs":                                   {Now: noon, Observed: observed(4, hardware.AttemptRunning, "")},
		"it runs, and its installer may end it yet": {Now: noon.Add(time.Hour + time.Minute), Grace: 2 * time.Minute, Observed: observed(4, hardware.AttemptRunning, "")},
		"an erase without its power-off":            {Now: noon, Power: hardware.PowerOn, Observed: observed(4, hardware.AttemptSucceeded, "")},
		"the same, long after the deadline":         {Now: noon.Add(24 * time.Hour), Power: hardware.PowerUnknown, Observed: observed(4, hardware.AttemptSucceeded, "")},
	} {
		r := wanted(hardware.OpErase)
		if Conclude(&r, f); !equality.Semantic.DeepEqual(r, wanted(hardware.OpErase)) {
			t.Errorf("%s: %+v", name, r.Wanted)
		}
	}
	none := v1alpha1.HostRecordStatus{}
	if Conclude(&none, Facts{Now: noon, Observed: observed(0, hardware.AttemptFailed, "")}); none.Failures != 0 {
		t.Error("something was concluded of no attempt")
	}
}

func TestAnOutcomeIsWrittenOnceWithAllThatFollows(t *testing.T) {
	erased := Facts{Now: noon, Power: hardware.PowerOff, Observed: observed(4, hardware.AttemptSucceeded, "")}
	r := wanted(hardware.OpErase)
	Conclude(&r, erased)
	if e := r.Erased; r.Wanted.Outcome != v1alpha1.AttemptSucceeded || e == nil || e.Mode != v1alpha1.EraseFull || e.Attempt != 4 || e.Tenant != "team/research" || r.Installed != nil {
		t.Errorf("erased: %+v, %+v", r.Wanted, r)
	}
	r = wanted(hardware.OpInstall)
	r.Failures = 2
	Conclude(&r, Facts{Now: noon, Observed: observed(4, hardware.AttemptSucceeded, ""), Spec: v1alpha1.HostRecordSpec{
		Machine: &v1alpha1.MachineReference{UID: "m1"}, Attempt: 2, Revision: "r2"}})
	if i := r.Installed; i == nil || i.MachineUID != "m1" || i.Attempt != 2 || i.Revision != "r2" || i.Checksum != "sha256:aa" || r.Failures != 0 {
		t.Errorf("installed: %+v", r.Installed)
	}
	r = wanted(hardware.OpInstall)
	failed := Facts{Now: noon, Observed: observed(4, hardware.AttemptFailed, hardware.ReasonDiskError)}
	for range 2 {
		Conclude(&r, failed)
	}
	if w := r.Wanted; w.Outcome != v1alpha1.AttemptFailed || w.Step != "Writing" || w.Reason != "DiskError" || len(w.Message) > v1alpha1.MaxAttemptMessage || !utf8.ValidString(w.Message) || r.Failures != 1 {
		t.Errorf("failed: %+v, %d failures", r.Wanted, r.Failures)
	}
	r = wanted(hardware.OpInstall)
	if Conclude(&r, Facts{Now: noon, Observed: observed(4, hardware.AttemptFailed, hardware.ReasonCancelled)}); r.Failures != 0 || r.Wanted.Reason != "Cancelled" {
		t.Errorf("cancelled: %d failures, %+v", r.Failures, r.Wanted)
	}
}

func TestAnAttemptThatItsInstallerNeverEndsIsOverdue(t *testing.T) {
	late := Facts{Now: noon.Add(time.Hour + 3*time.Minute), Grace: 2 * time.Minute, Problem: "BMCUnreachable: no answer"}
	r := wanted(hardware.OpInstall)
	r.Attempt = &v1alpha1.HostAttempt{Number: 4, Step: "Loading"}
	Conclude(&r, late)
	if w := r.Wanted; w.Reason != "DeadlineExceeded" || w.Step != "Loading" || w.Message != "the deadline passed at step Loading; BMCUnreachable: no answer" || r.Failures != 1 {
		t.Errorf("overdue: %+v", w)
	}
	r = wanted(hardware.OpInstall)
	r.Attempt = &v1alpha1.HostAttempt{Number: 3, Step: "Finishing"}
	if Conclude(&r, late); r.Wanted.Step != "PoweringOff" {
		t.Errorf("the step of an earlier attempt is told: %+v", r.Wanted)
	}
}
