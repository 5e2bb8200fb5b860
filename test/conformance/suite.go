package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// beat is how often a controller calls.
	beat = 10 * time.Second
	// ample is a deadline that no sound attempt reaches.
	ample = 2 * time.Hour
)

// image is what the suite installs.
var image = hardware.Image{
	URL: "http://images.example/a.raw.zst", Checksum: "sha256:" + strings.Repeat("a1", 32), Format: "raw.zst",
}

// Run runs the suite.
func Run(t *testing.T, harness Harness) {
	t.Helper()
	for _, group := range []map[string]func(*testing.T, Harness){outcomes, keys, interruptions, powers} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) { test(t, harness) })
		}
	}
}

// world is a Rig with what the tests do to it.
type world struct {
	Rig
	t *testing.T
}

func build(t *testing.T, harness Harness, faults Faults) *world {
	t.Helper()
	rig := harness(t, faults)
	if rig == nil {
		t.Skip("this harness cannot make such a server")
	}
	return &world{Rig: rig, t: t}
}

func (w *world) attempt(number int64) hardware.Attempt {
	return hardware.Attempt{Number: number, Deadline: w.Now().Add(ample)}
}

// work is one call of the Installer, repeated by settle.
type work func(hardware.Attempt) error

func (w *world) install(attempt hardware.Attempt) error {
	spec := hardware.InstallSpec{Image: image, ConfigDrive: hardware.ConfigDrive{UserData: []byte("#cloud-config\n")}}
	return w.Installer().Install(w.t.Context(), w.Host(), attempt, spec)
}

func (w *world) erase(mode hardware.EraseMode) work {
	return func(attempt hardware.Attempt) error {
		return w.Installer().Erase(w.t.Context(), w.Host(), attempt, mode)
	}
}

// status is the current attempt; the BMC's silence is no obstacle.
func (w *world) status() hardware.AttemptStatus {
	w.t.Helper()
	seen, err := w.Installer().Observe(w.t.Context(), w.Host())
	if err != nil && hardware.KindOf(err) != hardware.Unreachable {
		w.t.Fatalf("observe: %v", err)
	}
	if seen.Attempt == nil {
		return hardware.AttemptStatus{}
	}
	return *seen.Attempt
}

// tick is one beat of a controller.
func (w *world) tick(attempt hardware.Attempt, do work) hardware.AttemptStatus {
	w.t.Helper()
	switch err := do(attempt); hardware.KindOf(err) {
	case "":
		if err != nil {
			w.t.Fatalf("an error without a kind: %v", err)
		}
	case hardware.Unreachable, hardware.Busy:
	default:
		w.t.Fatal(err)
	}
	w.Advance(beat)
	if w.Running() == DiskPartial || w.Running() == DiskErased {
		w.t.Fatalf("the server booted a disk that is %s", w.Running())
	}
	return w.status()
}

// settle calls until the attempt is settled, which it must be soon after its deadline.
func (w *world) settle(attempt hardware.Attempt, do work) hardware.AttemptStatus {
	w.t.Helper()
	return w.until(attempt, do, func(s hardware.AttemptStatus) bool { return s.State != hardware.AttemptRunning })
}

func (w *world) until(attempt hardware.Attempt, do work, reached func(hardware.AttemptStatus) bool) hardware.AttemptStatus {
	w.t.Helper()
	for w.Now().Before(attempt.Deadline.Add(2 * beat)) {
		status := w.tick(attempt, do)
		if status.Number != attempt.Number {
			w.t.Fatalf("attempt %d is observed, expected %d", status.Number, attempt.Number)
		}
		if reached(status) {
			return status
		}
	}
	w.t.Fatalf("not reached by the deadline: %+v", w.status())
	return hardware.AttemptStatus{}
}

// working tells whether the attempt works on the disk.
func working(s hardware.AttemptStatus) bool {
	return s.Step == hardware.StepWriting && s.DoneBytes > 0 || s.Step == hardware.StepErasing
}

func (w *world) succeeded(status hardware.AttemptStatus) {
	w.t.Helper()
	if status.State != hardware.AttemptSucceeded || status.Reason != "" {
		w.t.Fatalf("expected success, the attempt is %s at %s: %s: %s", status.State, status.Step, status.Reason, status.Message)
	}
}

func (w *world) failed(status hardware.AttemptStatus, reason hardware.Reason) {
	w.t.Helper()
	if status.State != hardware.AttemptFailed || status.Reason != reason {
		w.t.Fatalf("expected failure by %s, the attempt is %s at %s: %q: %s", reason, status.State, status.Step, status.Reason, status.Message)
	}
	if status.Message == "" {
		w.t.Error("the failure says nothing to the operator")
	}
}

// installed checks that the server runs the image from its disk.
func (w *world) installed() {
	w.t.Helper()
	for range 60 {
		if w.Running() == image.Checksum {
			return
		}
		w.Advance(beat)
	}
	w.t.Errorf("the disk holds %q and the server runs %q, expected the image", w.Disk(), w.Running())
}

func (w *world) off() {
	w.t.Helper()
	seen, err := w.Installer().Observe(w.t.Context(), w.Host())
	if err != nil || seen.Power != hardware.PowerOff || w.Power() != hardware.PowerOff {
		w.t.Errorf("observed power %s (%v), real power %s, expected Off", seen.Power, err, w.Power())
	}
}

// unchanged checks that calling again and again changes nothing.
func (w *world) unchanged(attempt hardware.Attempt, do work) {
	w.t.Helper()
	before, disk := w.status(), w.Disk()
	for range 5 {
		w.tick(attempt, do)
	}
	if diff := cmp.Diff(before, w.status()); diff != "" || w.Disk() != disk {
		w.t.Errorf("a settled attempt changed (-before +after), disk %q to %q:\n%s", disk, w.Disk(), diff)
	}
}
