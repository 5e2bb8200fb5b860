package direct

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// Options configure an Installer. BMCs and Store are required.
type Options struct {
	// BMCs opens the servers' management controllers.
	BMCs hardware.BMCOpener
	// Store keeps the sessions, and serves the config drives: InstallSpec.ConfigDrive itself is not written anywhere here.
	Store netboot.Store
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
	// Timeouts bound the steps.
	Timeouts hardware.Timeouts
	// Log gets one line for every act; nil: none.
	Log *slog.Logger
}

// Installer implements hardware.Installer. It is safe for concurrent use; a caller runs one call per host at a time.
type Installer struct {
	options Options

	mu sync.Mutex
	// watched is what this process has seen of each host's attempt.
	watched map[string]watched
	// asked remembers what power was last asked for outside attempts.
	asked map[string]asked
}

var _ hardware.Installer = (*Installer)(nil)

// New makes an Installer.
func New(options Options) *Installer {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	options.Timeouts = options.Timeouts.WithDefaults()
	return &Installer{options: options, watched: map[string]watched{}, asked: map[string]asked{}}
}

// Capabilities implements hardware.Installer.
func (i *Installer) Capabilities() hardware.Capabilities {
	return hardware.Capabilities{
		Formats:        []string{"raw", "raw.gz", "raw.zst"},
		EraseModes:     []hardware.EraseMode{hardware.EraseNone, hardware.EraseMetadata, hardware.EraseFull},
		ByteProgress:   true,
		AgentInventory: true,
	}
}

// Observe implements hardware.Installer. When the BMC cannot be read, the Observation is complete but for PowerUnknown,
// and the BMC's error is returned beside it.
func (i *Installer) Observe(ctx context.Context, host hardware.Host) (hardware.Observation, error) {
	seen := hardware.Observation{Power: hardware.PowerUnknown}
	power, powerErr := i.power(ctx, host)
	if powerErr == nil {
		seen.Power = power
	}
	s, err := i.options.Store.CachedByUID(ctx, host.UID)
	if err != nil {
		return seen, err
	}
	seen.Inventory = s.Inventory
	if s.Number > 0 {
		status := s.AttemptStatus
		status.Step = shownStep(s, seen.Power, i.watch(s, seen.Power, i.options.Clock()).cameOn)
		if isWritten(s) {
			// Nothing is left to be done for it: the caller's record of the end is the only one that is needed.
			status.State = hardware.AttemptSucceeded
		}
		seen.Attempt = &status
	}
	return seen, powerErr
}

// Install implements hardware.Installer.
func (i *Installer) Install(ctx context.Context, host hardware.Host, attempt hardware.Attempt, spec hardware.InstallSpec) error {
	if err := checkSpec(host, spec); err != nil {
		return err
	}
	return i.advance(ctx, host, attempt, netboot.Work{Operation: hardware.OpInstall, Image: spec.Image, RootDevice: spec.RootDevice})
}

// Erase implements hardware.Installer. EraseNone is the confirmed power-off alone.
func (i *Installer) Erase(ctx context.Context, host hardware.Host, attempt hardware.Attempt, mode hardware.EraseMode) error {
	switch mode {
	case hardware.EraseNone, hardware.EraseMetadata, hardware.EraseFull:
	default:
		return hardware.Errorf(hardware.Unsupported, "erase", host.String(), "unknown erase mode %q", mode)
	}
	return i.advance(ctx, host, attempt, netboot.Work{Operation: hardware.OpErase, Erase: mode})
}

// Inspect implements hardware.Installer: the BMC's inventory, without a boot and whatever the power.
func (i *Installer) Inspect(ctx context.Context, host hardware.Host, attempt hardware.Attempt) error {
	s, err := i.begin(ctx, host, attempt, netboot.Work{Operation: hardware.OpInspect})
	if err != nil || s.State != hardware.AttemptRunning {
		return err
	}
	var inventory hardware.Inventory
	bmc, bmcErr := i.options.BMCs.OpenBMC(ctx, host.BMC)
	if bmcErr == nil {
		inventory, bmcErr = bmc.Inventory(ctx)
	}
	now := i.options.Clock()
	if bmcErr != nil {
		if now.Before(s.Deadline) {
			return bmcErr
		}
		_, err := i.change(ctx, host, s, func(s *netboot.Session) {
			settle(s, hardware.AttemptFailed, hardware.ReasonDeadlineExceeded, "the BMC gave no inventory: "+bmcErr.Error())
		})
		return err
	}
	_, err = i.change(ctx, host, s, func(s *netboot.Session) {
		merged := merge(s.Inventory, inventory)
		s.Inventory = &merged
		settle(s, hardware.AttemptSucceeded, "", "")
	})
	return err
}

// Cancel implements hardware.Installer. The session is closed first, so that the boot service serves the host no more;
// an attempt that never began is recorded as cancelled, so that a late call cannot begin it.
func (i *Installer) Cancel(ctx context.Context, host hardware.Host, attempt hardware.Attempt) error {
	const op = "cancel attempt"
	now := i.options.Clock()
	_, err := i.options.Store.Update(ctx, host.UID, func(s *netboot.Session) error {
		switch {
		case attempt.Number <= 0:
			return hardware.Errorf(hardware.Invalid, op, host.String(), "attempt %d: numbers begin with 1", attempt.Number)
		case s.Number > attempt.Number:
			return superseded(op, host, s, attempt)
		case s.Number < attempt.Number:
			*s = freshSession(s.Inventory, host, attempt, netboot.Work{}, now)
		}
		switch {
		case isWritten(*s):
			settle(s, hardware.AttemptSucceeded, "", "") // as Observe has said
		case s.State == hardware.AttemptRunning:
			settle(s, hardware.AttemptFailed, hardware.ReasonCancelled, "cancelled at "+string(s.Step))
		}
		return nil
	})
	if err != nil {
		return err
	}
	i.forget(host)
	power, err := i.power(ctx, host)
	if err != nil || power == hardware.PowerOff {
		return err
	}
	return i.setPower(ctx, host, hardware.TurnOff)
}

// advance does the next thing for an attempt that boots the agent.
func (i *Installer) advance(ctx context.Context, host hardware.Host, attempt hardware.Attempt, work netboot.Work) error {
	s, err := i.begin(ctx, host, attempt, work)
	if err != nil || s.State != hardware.AttemptRunning || isWritten(s) {
		return err
	}
	// Power is read before the session: a power-off that follows the agent's result is then never taken for a loss of power.
	power, powerErr := i.power(ctx, host)
	if powerErr != nil {
		power = hardware.PowerUnknown
	}
	s, err = i.options.Store.ByUID(ctx, host.UID)
	if err != nil {
		return err
	}
	if s.Number != attempt.Number {
		return superseded("advance attempt", host, &s, attempt)
	}
	if s.State != hardware.AttemptRunning || isWritten(s) {
		return nil
	}
	now := i.options.Clock()
	d := decide(facts{
		power: power, powerErr: powerErr, session: s, watched: i.watch(s, power, now), now: now, timeouts: i.options.Timeouts,
	})
	return i.do(ctx, host, s, d, powerErr)
}

// do carries out a decision.
func (i *Installer) do(ctx context.Context, host hardware.Host, s netboot.Session, d decision, powerErr error) error {
	log := i.options.Log.With("host", host.String(), "attempt", s.Number, "step", s.Step)
	if d.act != actWait && d.act != actReport {
		log.Info(string(d.act), "reason", string(d.reason), "message", d.message)
	}
	switch d.act {
	case actReport:
		return powerErr
	case actPowerOff:
		return i.setPower(ctx, host, hardware.TurnOff)
	case actBootNetwork, actPowerOn:
		return i.bootNetwork(ctx, host, s, d.act == actBootNetwork)
	case actSucceed, actFail:
		state := hardware.AttemptSucceeded
		if d.act == actFail {
			state = hardware.AttemptFailed
		}
		_, err := i.change(ctx, host, s, func(s *netboot.Session) {
			settle(s, state, d.reason, d.message)
			if d.step != "" {
				s.Step = d.step
			}
		})
		i.forget(host)
		return err
	}
	return nil
}

// bootNetwork sets the boot override and then powers the host on; anew says whether the step begins with it. Both belong to one
// record: an override that is set twice, or for a host that is not powered on then, does no harm.
func (i *Installer) bootNetwork(ctx context.Context, host hardware.Host, s netboot.Session, anew bool) error {
	bmc, err := i.options.BMCs.OpenBMC(ctx, host.BMC)
	if err != nil {
		return err
	}
	if err := bmc.SetBootOnce(ctx, hardware.BootNetwork); err != nil {
		return err
	}
	now := i.options.Clock()
	// The power-on is recorded before it is asked for, since the boot service answers from then on.
	opened, err := i.change(ctx, host, s, func(s *netboot.Session) {
		if s.OpenedAt = now; anew || s.Step != hardware.StepBooting {
			s.Step, s.StepAt = hardware.StepBooting, now
		}
	})
	if err != nil || opened.Number != s.Number || opened.State != hardware.AttemptRunning || opened.Step != hardware.StepBooting {
		return err // settled or moved on meanwhile: nothing is powered on
	}
	return bmc.SetPower(ctx, hardware.TurnOn)
}

func (i *Installer) power(ctx context.Context, host hardware.Host) (hardware.PowerState, error) {
	bmc, err := i.options.BMCs.OpenBMC(ctx, host.BMC)
	if err != nil {
		return hardware.PowerUnknown, err
	}
	return bmc.PowerState(ctx)
}

func (i *Installer) setPower(ctx context.Context, host hardware.Host, action hardware.PowerAction) error {
	bmc, err := i.options.BMCs.OpenBMC(ctx, host.BMC)
	if err != nil {
		return err
	}
	return bmc.SetPower(ctx, action)
}
