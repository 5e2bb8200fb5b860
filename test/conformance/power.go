package conformance

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// powers: changes of power on a host where no attempt runs.
var powers = map[string]func(*testing.T, Harness){
	"the power becomes what is wanted, and stays": func(t *testing.T, h Harness) {
		for name, faults := range map[string]Faults{"sound": {}, "ignores the first requests": {IgnorePowerOn: 2, IgnorePowerOff: 2}} {
			w := build(t, h, faults)
			for _, want := range []hardware.PowerState{hardware.PowerOff, hardware.PowerOn, hardware.PowerOff} {
				if err := w.change(hardware.PowerChange{Desired: want, Since: w.Now()}); err != nil || w.Power() != want {
					t.Errorf("%s: power %s (%v), expected %s", name, w.Power(), err, want)
				}
			}
		}
	},
	"an operating system that does not stop loses its power": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		if err := w.change(hardware.PowerChange{Desired: hardware.PowerOff, Graceful: true, Since: w.Now()}); err != nil || w.Power() != hardware.PowerOff {
			t.Errorf("power %s (%v), expected Off", w.Power(), err)
		}
	},
	"a change of power that is ignored is named": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{IgnorePowerOff: -1, IgnorePowerOn: -1})
		w.ignored(hardware.PowerOff, hardware.ReasonPowerOffIgnored)
		w.CutPower()
		w.ignored(hardware.PowerOn, hardware.ReasonPowerOnIgnored)
	},
	"a change of power that is refused until its time is over is ignored": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{RefusePower: true})
		change := hardware.PowerChange{Desired: hardware.PowerOff, Graceful: true, Since: w.Now()}
		for _, c := range []struct {
			after time.Duration
			kind  hardware.Kind
		}{{0, hardware.Busy}, {time.Hour, hardware.Ignored}, {beat, hardware.Ignored}} {
			w.Advance(c.after)
			if err := w.Installer().SetPower(t.Context(), w.Host(), change); hardware.KindOf(err) != c.kind {
				t.Errorf("%s later: %v, expected %s", c.after, err, c.kind)
			}
		}
	},
	"a change of power survives its process": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{IgnorePowerOff: 2})
		change := hardware.PowerChange{Desired: hardware.PowerOff, Graceful: true, Since: w.Now()}
		for range 60 {
			w.Restart()
			if err := w.Installer().SetPower(t.Context(), w.Host(), change); err != nil {
				t.Fatal(err)
			}
			w.Advance(beat)
		}
		w.off()
	},
	"a silent BMC is unreachable, and nothing is ignored": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		change := hardware.PowerChange{Desired: hardware.PowerOff, Since: w.Now()}
		w.SilenceBMC(true)
		w.Advance(time.Hour)
		if err := w.Installer().SetPower(t.Context(), w.Host(), change); hardware.KindOf(err) != hardware.Unreachable {
			t.Errorf("with a silent BMC: %v, expected Unreachable", err)
		}
	},
	"a change to what is no state of power is refused": func(t *testing.T, h Harness) {
		w := build(t, h, Faults{})
		for _, change := range []hardware.PowerChange{{Desired: hardware.PowerTurningOff, Since: w.Now()}, {Desired: hardware.PowerOff}} {
			if err := w.Installer().SetPower(t.Context(), w.Host(), change); hardware.KindOf(err) != hardware.Invalid {
				t.Errorf("%+v: %v, expected Invalid", change, err)
			}
		}
	},
}

// change asks until the power is as wanted, or the change failed.
func (w *world) change(change hardware.PowerChange) error {
	w.t.Helper()
	for w.Now().Before(change.Since.Add(time.Hour)) {
		if err := w.Installer().SetPower(w.t.Context(), w.Host(), change); err != nil {
			return err
		}
		w.Advance(beat)
		if seen, err := w.Installer().Observe(w.t.Context(), w.Host()); err != nil || seen.Power == change.Desired {
			return err
		}
	}
	return nil
}

// ignored expects that a change of power is reported as ignored, at every further call as well.
func (w *world) ignored(want hardware.PowerState, reason hardware.Reason) {
	w.t.Helper()
	change := hardware.PowerChange{Desired: want, Since: w.Now()}
	err := w.change(change)
	for range 2 {
		if hardware.KindOf(err) != hardware.Ignored || hardware.ReasonOf(err) != reason {
			w.t.Fatalf("power %s that is ignored: %v, expected Ignored by %s", want, err, reason)
		}
		w.Advance(beat)
		err = w.Installer().SetPower(w.t.Context(), w.Host(), change)
	}
}
