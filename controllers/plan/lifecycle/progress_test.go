package lifecycle

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAMachineSaysHalvesOfItsImageAndNoSteps(t *testing.T) {
	wanted := &v1alpha1.WantedAttempt{Number: 4, Operation: "Install", MachineUID: "m", MachineAttempt: 1}
	attempt := &v1alpha1.HostAttempt{Number: 4, State: "Running", TotalBytes: 100}
	f := Facts{Now: time.Unix(1000, 0), Machine: Machine{Name: "a", UID: "m", Status: v1alpha1.MachineStatus{Phase: v1alpha1.MachineProvisioning, Attempt: 1}},
		Host: &Host{Record: &Record{Status: v1alpha1.HostRecordStatus{Wanted: wanted, Attempt: attempt}}}}
	for i, c := range []struct {
		step   string
		done   int64
		writes bool
	}{
		{"PoweringOff", 0, true}, {"PoweringOn", 0, false}, {"Booting", 0, false}, {"Loading", 0, false}, {"Registered", 0, false},
		{writing, 10, true}, {writing, 59, false}, {writing, 60, true}, {"Verifying", 100, false}, {"Finishing", 100, false},
		{"Loading", 0, true}, {writing, 5, true},
	} {
		attempt.Step, attempt.DoneBytes = c.step, c.done
		p := &planner{situation: situation{Facts: f, guards: realGuards()}, d: Decision{Status: *f.Machine.Status.DeepCopy()}}
		p.apply(p.awaitInstallation())
		if changed := !equality.Semantic.DeepEqual(f.Machine.Status, p.d.Status); changed != c.writes {
			t.Errorf("report %d, %s at %d: %+v, expected a write: %t", i, c.step, c.done, p.d.Status, c.writes)
		}
		f.Machine.Status = p.d.Status
	}
	late := metav1.NewMicroTime(f.Now)
	f.Machine.Status.Deadline, attempt.Step = &late, "Booting"
	if r := (situation{Facts: f, guards: realGuards()}).awaitInstallation(); !strings.Contains(r.notice.message, "attempt 4 is at Booting") {
		t.Errorf("a late Machine does not name the step: %s", r.notice.message)
	}
}

func TestAQuickWriteIsNotTold(t *testing.T) {
	began := time.Unix(1000, 0)
	at := metav1.NewMicroTime(began)
	wanted := &v1alpha1.WantedAttempt{Number: 4, Operation: "Install", MachineUID: "m", MachineAttempt: 1}
	attempt := &v1alpha1.HostAttempt{Number: 4, State: "Running", Step: writing, StepAt: &at, TotalBytes: 100, DoneBytes: 100}
	for _, c := range []struct {
		after    time.Duration
		progress *v1alpha1.Progress
		told     bool
		requeue  time.Duration
	}{
		{time.Second, nil, false, quickWrite - time.Second},
		{quickWrite, nil, true, 0},
		{time.Second, &v1alpha1.Progress{Step: writing, DoneBytes: 10}, true, 0},
	} {
		f := Facts{Now: began.Add(c.after), Machine: Machine{Name: "a", UID: "m", Status: v1alpha1.MachineStatus{Phase: v1alpha1.MachineProvisioning, Attempt: 1, Progress: c.progress}},
			Host: &Host{Record: &Record{Status: v1alpha1.HostRecordStatus{Wanted: wanted, Attempt: attempt}}}}
		r := (situation{Facts: f, guards: realGuards()}).awaitInstallation()
		if told := r.notice.waitingFor == "the image to be written"; told != c.told || r.requeue != c.requeue {
			t.Errorf("after %s with progress %v: told %t, again after %s", c.after, c.progress, told, r.requeue)
		}
	}
}
