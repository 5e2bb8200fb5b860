package direct_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/test/conformance"
)

// racingStore changes the session between the read and the write of the Installer.
type racingStore struct {
	*store
	// meanwhile runs once, after the next ByUID.
	meanwhile func(*netboot.Session)
}

func (r *racingStore) ByUID(ctx context.Context, uid string) (netboot.Session, error) {
	session, err := r.store.ByUID(ctx, uid)
	if change := r.meanwhile; change != nil {
		r.meanwhile = nil
		if _, err := r.store.Update(ctx, uid, func(s *netboot.Session) error { change(s); return nil }); err != nil {
			return session, err
		}
	}
	return session, err
}

var (
	spec    = hardware.InstallSpec{Image: hardware.Image{URL: "http://images.example/a.raw", Checksum: "sha256:" + strings.Repeat("a1", 32), Format: "raw"}}
	attempt = hardware.Attempt{Number: 1, Deadline: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
)

// installUntil calls Install until the condition holds, ten seconds apart.
func installUntil(t *testing.T, r *rig, holds func() bool) {
	t.Helper()
	for range 100 {
		if holds() {
			return
		}
		if err := r.installer.Install(t.Context(), r.Host(), attempt, spec); err != nil {
			t.Fatal(err)
		}
		r.Advance(10 * time.Second)
	}
	t.Fatalf("never reached, the session is at %s", r.store.session.Step)
}

func TestNothingIsPoweredOnAfterACancelInBetween(t *testing.T) {
	r := newRig(t, conformance.Faults{})
	race := &racingStore{store: r.store}
	r.installer = direct.New(direct.Options{BMCs: r.client, Store: race, Clock: r.Now})
	installUntil(t, r, func() bool { return r.Power() == hardware.PowerOff })
	race.meanwhile = func(s *netboot.Session) { s.State, s.Reason = hardware.AttemptFailed, hardware.ReasonCancelled }
	if err := r.installer.Install(t.Context(), r.Host(), attempt, spec); err != nil {
		t.Fatal(err)
	}
	if r.Power() != hardware.PowerOff || !r.store.session.OpenedAt.IsZero() {
		t.Errorf("power is %s, opened at %v, expected Off and never", r.Power(), r.store.session.OpenedAt)
	}
}

// laggingStore has a cache that does not change any more.
type laggingStore struct {
	*store
	cached netboot.Session
}

func (l *laggingStore) CachedByUID(context.Context, string) (netboot.Session, error) {
	return l.cached, nil
}

func TestNothingIsPoweredOnByACacheThatLags(t *testing.T) {
	r := newRig(t, conformance.Faults{})
	installUntil(t, r, func() bool { return r.Power() == hardware.PowerOff })
	r.installer = direct.New(direct.Options{BMCs: r.client, Store: &laggingStore{r.store, r.store.session}, Clock: r.Now})
	r.store.session.State, r.store.session.Reason = hardware.AttemptFailed, hardware.ReasonCancelled // by another replica
	if err := r.installer.Install(t.Context(), r.Host(), attempt, spec); err != nil {
		t.Fatal(err)
	}
	if r.Power() != hardware.PowerOff || !r.store.session.OpenedAt.IsZero() {
		t.Errorf("power is %s, opened at %v, expected Off and never", r.Power(), r.store.session.OpenedAt)
	}
}

func TestATimeOutDoesNotFailAServerThatBootedInBetween(t *testing.T) {
	r := newRig(t, conformance.Faults{DeadBootNIC: true})
	race := &racingStore{store: r.store}
	r.installer = direct.New(direct.Options{BMCs: r.client, Store: race, Clock: r.Now})
	installUntil(t, r, func() bool { return r.store.session.Step == hardware.StepBooting })
	race.meanwhile = func(s *netboot.Session) {
		s.Boots++ // the boot document was fetched just now
		s.Step = hardware.StepLoading
	}
	for i := 0; race.meanwhile != nil && i < 100; i++ { // until the time-out, which is decided by what is stored
		r.Advance(time.Minute)
		if err := r.installer.Install(t.Context(), r.Host(), attempt, spec); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.store.session; race.meanwhile != nil || s.State != hardware.AttemptRunning || s.Step != hardware.StepLoading {
		t.Errorf("the attempt is %s at %s, expected Running at Loading", s.State, s.Step)
	}
}

func TestASecondBootInBetweenIsNotTakenForTheSilenceOfTheFirst(t *testing.T) {
	r := newRig(t, conformance.Faults{NoAgent: true})
	race := &racingStore{store: r.store}
	r.installer = direct.New(direct.Options{BMCs: r.client, Store: race, Clock: r.Now})
	installUntil(t, r, func() bool { return r.store.session.Step == hardware.StepLoading })
	r.Advance(11 * time.Minute) // past the time-out of Loading
	race.meanwhile = func(s *netboot.Session) { s.Boots, s.StepAt = s.Boots+1, r.now }
	if err := r.installer.Install(t.Context(), r.Host(), attempt, spec); err != nil {
		t.Fatal(err)
	}
	if s := r.store.session; s.State != hardware.AttemptRunning || s.Boots != 2 {
		t.Errorf("the attempt is %s (%s) with %d boots, expected Running with 2", s.State, s.Reason, s.Boots)
	}
}

func TestAHostThatIsNotKnownIsNotFound(t *testing.T) {
	r := newRig(t, conformance.Faults{})
	host := r.Host()
	host.UID = "another"
	if err := r.installer.Install(t.Context(), host, attempt, spec); hardware.KindOf(err) != hardware.NotFound {
		t.Errorf("install: %v, expected NotFound", err)
	}
	host = r.Host()
	host.BootMAC = "52-54-00-AA-00-01"
	if err := r.installer.Install(t.Context(), host, attempt, spec); hardware.KindOf(err) != hardware.Invalid {
		t.Errorf("install with an odd MAC: %v, expected Invalid", err)
	}
	if r.store.writes != 0 || r.Power() != hardware.PowerOn {
		t.Error("something happened")
	}
}

func TestAHostWithoutAnAttemptHasNoneToObserveOrCancel(t *testing.T) {
	r := newRig(t, conformance.Faults{})
	if observation, err := r.installer.Observe(t.Context(), r.Host()); err != nil || observation.Attempt != nil {
		t.Errorf("attempt %+v, %v, expected none", observation.Attempt, err)
	}
	if err := r.installer.Cancel(t.Context(), r.Host(), hardware.Attempt{}); hardware.KindOf(err) != hardware.Invalid {
		t.Errorf("cancelling attempt 0: %v, expected Invalid", err)
	}
}

func TestAnInspectionFailsAtItsDeadlineWhileTheBMCIsSilent(t *testing.T) {
	for before, want := range map[time.Duration]hardware.AttemptState{time.Second: hardware.AttemptRunning, 0: hardware.AttemptFailed} {
		r := newRig(t, conformance.Faults{})
		r.SilenceBMC(true)
		inspection := hardware.Attempt{Number: 1, Deadline: r.Now().Add(before)}
		err := r.installer.Inspect(t.Context(), r.Host(), inspection, hardware.InspectByBMC)
		if state := r.store.session.State; state != want || (err == nil) != (want == hardware.AttemptFailed) {
			t.Errorf("%s before the deadline the attempt is %s (%v), expected %s", before, state, err, want)
		}
	}
}

func TestAPollAsksTheBMCForThePowerOnce(t *testing.T) {
	r := newRig(t, conformance.Faults{})
	installUntil(t, r, func() bool { return r.store.session.Step == hardware.StepWriting })
	r.bmc.Requests()
	for range 2 {
		if _, err := r.installer.Observe(t.Context(), r.Host()); err != nil {
			t.Fatal(err)
		}
		if err := r.installer.Install(t.Context(), r.Host(), attempt, spec); err != nil {
			t.Fatal(err)
		}
		if requests := r.bmc.Requests(); len(requests) != 1 {
			t.Errorf("a poll sent these requests to the BMC: %v", requests)
		}
		r.Advance(2 * time.Second)
	}
}

func TestAnEndedAttemptCostsNoRequestToTheBMC(t *testing.T) {
	r := newRig(t, conformance.Faults{})
	installUntil(t, r, func() bool { return r.store.session.Step == hardware.StepFinishing })
	r.bmc.Requests()
	if err := r.installer.Install(t.Context(), r.Host(), attempt, spec); err != nil {
		t.Fatal(err)
	}
	if requests := r.bmc.Requests(); len(requests) != 0 {
		t.Errorf("an ended attempt sent requests to the BMC: %v", requests)
	}
}
