package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// outcomes: what becomes of one attempt.
var outcomes = map[string]func(*testing.T, Harness){
	"an install writes the image and the server boots it from the disk": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		attempt := w.attempt(1)
		var progress []int64
		status := w.until(attempt, w.install, func(s hardware.AttemptStatus) bool {
			if s.Step == hardware.StepWriting {
				progress = append(progress, s.DoneBytes)
			}
			return s.State != hardware.AttemptRunning
		})
		w.succeeded(status)
		w.installed()
		if w.Installer().Capabilities().ByteProgress && len(slices.Compact(progress)) < 2 {
			t.Errorf("bytes written were observed as %v, expected them to grow", progress)
		}
		w.unchanged(attempt, w.install)
		w.installed()
	},
	"an erase clears the disk and ends with a confirmed power-off": func(t *testing.T, h Harness) {
		for _, mode := range build(t, h, Faults{}).Installer().Capabilities().EraseModes {
			w := build(t, h, Faults{})
			attempt := w.attempt(1)
			w.succeeded(w.settle(attempt, w.erase(mode)))
			w.off()
			want := DiskErased
			if mode == hardware.EraseNone {
				want = DiskForeign
			}
			if w.Disk() != want {
				t.Errorf("after an erase of mode %s the disk is %s, expected %s", mode, w.Disk(), want)
			}
			w.unchanged(attempt, w.erase(mode))
			w.off()
		}
	},
	"an erase whose power-off is ignored at the end has not succeeded": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{IgnorePowerOff: -1})
		w.CutPower() // so that the first power-off holds already
		w.failed(w.settle(w.attempt(1), w.erase(hardware.EraseMetadata)), hardware.ReasonPowerOffIgnored)
	},
	"an inspection yields an inventory and leaves the disk alone": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		w.succeeded(w.settle(w.attempt(1), func(a hardware.Attempt) error { return w.Installer().Inspect(t.Context(), w.Host(), a) }))
		seen, err := w.Installer().Observe(t.Context(), w.Host())
		if err != nil || seen.Inventory == nil || seen.Inventory.SerialNumber == "" {
			t.Errorf("inventory is %+v (%v), expected one with a serial number", seen.Inventory, err)
		}
		if w.Disk() != DiskForeign {
			t.Errorf("the disk is %s, expected it untouched", w.Disk())
		}
	},
	"power-ons that are ignored at first are asked for again": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{IgnorePowerOn: 2})
		w.succeeded(w.settle(w.attempt(1), w.install))
		w.installed()
	},
	"failures name the hop": func(t *testing.T, h Harness) {
		for reason, faults := range map[hardware.Reason]Faults{
			hardware.ReasonPowerOnIgnored:  {IgnorePowerOn: -1},
			hardware.ReasonPowerOffIgnored: {IgnorePowerOff: -1},
			hardware.ReasonNoBootRequest:   {DeadBootNIC: true},
			hardware.ReasonAgentMissing:    {NoAgent: true},
			hardware.ReasonAgentSilent:     {AgentHangs: true},
			hardware.ReasonDiskError:       {DiskError: true},
			hardware.ReasonDigestMismatch:  {WrongDigest: true},
			hardware.ReasonBootLoop:        {BootLoop: true},
		} {
			t.Run(string(reason), func(t *testing.T) {
				w := build(t, h, faults)
				attempt := w.attempt(1)
				w.failed(w.settle(attempt, w.install), reason)
				w.unchanged(attempt, w.install)
			})
			t.Run(string(reason)+" by a short deadline", func(t *testing.T) {
				w := build(t, h, faults)
				status := w.settle(hardware.Attempt{Number: 1, Deadline: w.Now().Add(4 * time.Minute)}, w.install)
				if status.State != hardware.AttemptFailed || status.Reason == "" {
					t.Errorf("the attempt is %s: %q, expected a failure with a reason", status.State, status.Reason)
				}
			})
		}
	},
}

// keys: calls are keyed by attempt.
var keys = map[string]func(*testing.T, Harness){
	"an attempt that is over is a conflict": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		w.succeeded(w.settle(w.attempt(2), w.install))
		for name, do := range map[string]work{
			"install": w.install,
			"erase":   w.erase(hardware.EraseMetadata),
			"inspect": func(a hardware.Attempt) error { return w.Installer().Inspect(t.Context(), w.Host(), a) },
			"cancel":  func(a hardware.Attempt) error { return w.Installer().Cancel(t.Context(), w.Host(), a) },
		} {
			if err := do(w.attempt(1)); hardware.KindOf(err) != hardware.Conflict {
				t.Errorf("%s of attempt 1 after attempt 2: %v, expected Conflict", name, err)
			}
		}
		w.installed()
	},
	"another piece of work under the same number is a conflict": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		attempt := w.attempt(1)
		w.until(attempt, w.install, working)
		if err := w.erase(hardware.EraseFull)(attempt); hardware.KindOf(err) != hardware.Conflict {
			t.Errorf("an erase as attempt 1 while it installs: %v, expected Conflict", err)
		}
		w.succeeded(w.settle(attempt, w.install))
		w.installed()
	},
	"a new attempt starts over after a failed one": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{IgnorePowerOn: 100})
		w.failed(w.settle(hardware.Attempt{Number: 1, Deadline: w.Now().Add(3 * time.Minute)}, w.install), hardware.ReasonPowerOnIgnored)
		w.CutPower()
		status := w.tick(w.attempt(2), w.install)
		if status.Number != 2 || status.State != hardware.AttemptRunning || status.Reason != "" || status.Boots != 0 {
			t.Errorf("the second attempt begins as %+v", status)
		}
	},
	"a new attempt takes over from one under way": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		w.until(w.attempt(1), w.install, working)
		w.succeeded(w.settle(w.attempt(2), w.erase(hardware.EraseMetadata)))
		w.off()
		if w.Disk() != DiskErased {
			t.Errorf("the disk is %s, expected it erased", w.Disk())
		}
	},
	"requests that make no sense have no effect": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		install := func(change func(*hardware.Image)) error {
			bad := image
			change(&bad)
			return w.Installer().Install(t.Context(), w.Host(), w.attempt(1), hardware.InstallSpec{Image: bad})
		}
		for name, err := range map[string]error{
			"no number":   w.install(w.attempt(0)),
			"no deadline": w.install(hardware.Attempt{Number: 1}),
			"no URL":      install(func(i *hardware.Image) { i.URL = "" }),
			"no digest":   install(func(i *hardware.Image) { i.Checksum = "http://images.example/SHA256SUMS" }),
			"format":      install(func(i *hardware.Image) { i.Format = "vmdk" }),
			"erase mode":  w.erase("Gently")(w.attempt(1)),
		} {
			if kind := hardware.KindOf(err); kind != hardware.Invalid && kind != hardware.Unsupported {
				t.Errorf("%s: %v, expected Invalid or Unsupported", name, err)
			}
		}
		if status := w.status(); status.Number != 0 || w.Running() != DiskForeign {
			t.Errorf("something happened: %+v, the server runs %q", status, w.Running())
		}
	},
}

// interruptions: cancelling, losing power, losing the BMC, losing the process.
var interruptions = map[string]func(*testing.T, Harness){
	"a cancelled attempt ends with the power off and does not come back": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		attempt := w.attempt(1)
		w.until(attempt, w.install, working)
		cancel := func(a hardware.Attempt) error { return w.Installer().Cancel(t.Context(), w.Host(), a) }
		w.failed(w.settle(attempt, cancel), hardware.ReasonCancelled)
		w.off()
		w.unchanged(attempt, w.install)
		w.off()
	},
	"an attempt cancelled before it began does not begin": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		attempt := w.attempt(3)
		w.failed(w.settle(attempt, func(a hardware.Attempt) error { return w.Installer().Cancel(t.Context(), w.Host(), a) }), hardware.ReasonCancelled)
		w.off()
		w.unchanged(attempt, w.install)
		w.off()
	},
	"cancelling what has succeeded powers off and keeps the outcome": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		attempt := w.attempt(1)
		w.succeeded(w.settle(attempt, w.install))
		w.installed()
		w.succeeded(w.settle(attempt, func(a hardware.Attempt) error { return w.Installer().Cancel(t.Context(), w.Host(), a) }))
		w.off()
	},
	"power lost under way is restored within the attempt": func(t *testing.T, h Harness) {
		for _, step := range []hardware.Step{hardware.StepBooting, hardware.StepLoading, hardware.StepWriting, hardware.StepVerifying} {
			w := build(t, h, Faults{})
			attempt := w.attempt(1)
			w.until(attempt, w.install, func(s hardware.AttemptStatus) bool { return s.Step == step })
			w.CutPower()
			w.succeeded(w.settle(attempt, w.install))
			w.installed()
		}
	},
	"a BMC that is silent for a while changes nothing": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{IgnorePowerOn: 1}) // so that the power-on takes a while
		attempt := w.attempt(1)
		for _, reached := range []func(hardware.AttemptStatus) bool{
			func(s hardware.AttemptStatus) bool { return s.Number == 1 },
			func(s hardware.AttemptStatus) bool { return s.Step == hardware.StepPoweringOn },
			func(s hardware.AttemptStatus) bool { return s.Step == hardware.StepBooting },
		} {
			w.until(attempt, w.install, reached)
			before := w.status()
			w.SilenceBMC(true)
			if err := w.install(attempt); hardware.KindOf(err) != hardware.Unreachable {
				t.Errorf("with a silent BMC at %s: %v, expected Unreachable", before.Step, err)
			}
			if after := w.status(); after != before {
				t.Errorf("a failed call changed the attempt from %+v to %+v", before, after)
			}
			w.SilenceBMC(false)
		}
		w.succeeded(w.settle(attempt, w.install))
		w.installed()
	},
	"a BMC that stays silent ends with the deadline": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		w.SilenceBMC(true)
		w.failed(w.settle(hardware.Attempt{Number: 1, Deadline: w.Now().Add(10 * time.Minute)}, w.install), hardware.ReasonDeadlineExceeded)
	},
	"the process may be killed after every call": func(t *testing.T, h Harness) {
		for name, faults := range map[string]Faults{"sound": {}, "power-on ignored at first": {IgnorePowerOn: 1}} {
			w := build(t, h, faults)
			w.succeeded(w.settle(w.attempt(1), func(a hardware.Attempt) error { defer w.Restart(); return w.install(a) }))
			w.installed()
			w.succeeded(w.settle(w.attempt(2), func(a hardware.Attempt) error { defer w.Restart(); return w.erase(hardware.EraseMetadata)(a) }))
			w.off()
			if t.Failed() {
				t.Fatal("with the server " + name)
			}
		}
	},
}
