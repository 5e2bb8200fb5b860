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
	// BMCs opens the management controllers of the servers.
	BMCs hardware.BMCOpener
	// Store stores the sessions and returns the config drives. The Installer does not store InstallSpec.ConfigDrive.
	Store netboot.Store
	// MediaURLs returns the URLs of the boot medium for the boot of the session's attempt with the number, by HTTP and by HTTPS, which may be empty; nil: no
	// server boots from virtual media.
	MediaURLs func(ctx context.Context, session netboot.Session, boot int) (plain, secure string, err error)
	// ProgramURLs returns the URLs of the EFI program for the boot, by HTTP and by HTTPS, which may be empty; nil: no server boots from a pinned URL.
	ProgramURLs func(ctx context.Context, session netboot.Session, boot int) (plain, secure string, err error)
	// BootAuthorities returns the authorities of the boot service's certificate in PEM; nil: there are none.
	BootAuthorities func(ctx context.Context) ([]byte, error)
	// Clock returns the current time; nil means time.Now.
	Clock func() time.Time
	// Timeouts are the time-outs of the steps. Values that are not positive are replaced by the defaults.
	Timeouts hardware.Timeouts
	// Log receives one line for every action; nil means no log.
	Log *slog.Logger
}

// Installer implements hardware.Installer. It is safe for concurrent use, with at most one call per host at a time.
type Installer struct {
	options Options

	mu sync.Mutex
	// records holds what this process has observed of the attempt of each host, by host UID.
	records map[string]attemptRecord
	// powers holds the power that Observe has read and that no attempt was advanced by, by host UID.
	powers map[string]observedPower
	// requests holds the last power request outside attempts, by host UID.
	requests map[string]requestRecord
	// cleared holds the boot whose override this process has cleared, by host UID.
	cleared map[string]bootID
	// refusals holds why the server of a running attempt could not be booted, by host UID.
	refusals map[string]bootRefusal
	// lostImages holds why the BMC of a running attempt could not fetch the boot medium, by host UID.
	lostImages map[string]lostImage
}

var _ hardware.Installer = (*Installer)(nil)

// New returns an Installer with the options.
func New(options Options) *Installer {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	options.Timeouts = options.Timeouts.WithDefaults()
	return &Installer{
		options: options, records: map[string]attemptRecord{}, powers: map[string]observedPower{}, requests: map[string]requestRecord{}, cleared: map[string]bootID{}, refusals: map[string]bootRefusal{}, lostImages: map[string]lostImage{},
	}
}

// Capabilities implements hardware.Installer.
func (i *Installer) Capabilities() hardware.Capabilities {
	return hardware.Capabilities{
		Formats:        []string{"raw", "raw.gz", "raw.zst"},
		EraseModes:     []hardware.EraseMode{hardware.EraseNone, hardware.EraseMetadata, hardware.EraseFull},
		ByteProgress:   true,
		AgentInventory: true, DiskEvidence: true,
		RootDeviceHints: hardware.AgentHints(),
	}
}

// Observe implements hardware.Installer. When the BMC cannot be read, it returns a complete Observation with PowerUnknown together with
// the error of the BMC.
func (i *Installer) Observe(ctx context.Context, host hardware.Host) (hardware.Observation, error) {
	observation := hardware.Observation{Power: hardware.PowerUnknown}
	power, powerErr := i.readPower(ctx, host)
	if powerErr == nil {
		observation.Power = power
		i.keepPower(host, power)
	}
	s, err := i.options.Store.CachedByUID(ctx, host.UID)
	if err != nil {
		return observation, err
	}
	observation.Inventory = s.Inventory
	if s.Number > 0 {
		status := s.AttemptStatus
		status.Step = reportedStep(s, observation.Power, i.recordObservation(s, observation.Power, i.options.Clock()).wasPoweredOn)
		if i.hasSucceeded(s) {
			// The session is not updated for this: the caller stores the end of the attempt.
			status.State = hardware.AttemptSucceeded
		}
		observation.Attempt = &status
	}
	return observation, powerErr
}

// Install implements hardware.Installer.
func (i *Installer) Install(ctx context.Context, host hardware.Host, attempt hardware.Attempt, spec hardware.InstallSpec) error {
	if err := validateSpec(host, spec); err != nil {
		return err
	}
	return i.advance(ctx, host, attempt, netboot.Work{
		Operation: hardware.OpInstall, Image: spec.Image, RootDevice: spec.RootDevice, GPUs: spec.GPUs, Requirements: spec.Requirements,
		PreviousRootDisk: spec.PreviousRootDisk, AcceptedRootDisk: spec.AcceptedRootDisk,
	})
}

// Erase implements hardware.Installer. EraseNone consists of the confirmed power-off only.
func (i *Installer) Erase(ctx context.Context, host hardware.Host, attempt hardware.Attempt, mode hardware.EraseMode) error {
	switch mode {
	case hardware.EraseNone, hardware.EraseMetadata, hardware.EraseFull:
	default:
		return hardware.Errorf(hardware.Unsupported, "erase", host.String(), "unknown erase mode %q", mode)
	}
	return i.advance(ctx, host, attempt, netboot.Work{Operation: hardware.OpErase, Erase: mode})
}

// Cancel implements hardware.Installer. It ends the session before it cuts the power. Example: if the power were cut first and the process
// were killed then, the session would still be running, and a person who switches the server on would start the agent, which writes
// the disk for an attempt that nobody wants any more. An attempt that has not begun is stored as cancelled, so that a late call
// cannot begin it.
func (i *Installer) Cancel(ctx context.Context, host hardware.Host, attempt hardware.Attempt) error {
	const op = "cancel attempt"
	now := i.options.Clock()
	ended, err := i.options.Store.Update(ctx, host.UID, func(s *netboot.Session) error {
		switch {
		case attempt.Number <= 0:
			return hardware.Errorf(hardware.Invalid, op, host.String(), "attempt %d: numbers begin with 1", attempt.Number)
		case s.Number > attempt.Number:
			return supersededError(op, host, s, attempt)
		case s.Number < attempt.Number:
			*s = newSession(*s, host, attempt, netboot.Work{}, now)
		}
		switch {
		case isInstalled(*s):
			endAttempt(s, hardware.AttemptSucceeded, "", s.Message) // Observe has already reported it
		case s.State == hardware.AttemptRunning:
			endAttempt(s, hardware.AttemptFailed, hardware.ReasonCancelled, "cancelled at "+string(s.Step))
		}
		return nil
	})
	if err != nil {
		return err
	}
	i.dropRecord(host)
	power, err := i.readPower(ctx, host)
	if err == nil && power != hardware.PowerOff && mustPowerOff(ended) {
		err = i.setPower(ctx, host, hardware.TurnOff)
	}
	i.takeOutAtEnd(ctx, host, ended)
	return err
}

// mustPowerOff reports whether a cancelled attempt may have powered the server on. An inspection that has booted no agent has not. Without it: a host is
// deleted, or somebody else is declared to install it, while its BMC is read, and whatever runs on the server loses its power.
func mustPowerOff(s netboot.Session) bool {
	return s.Operation != hardware.OpInspect || !s.OpenedAt.IsZero()
}

// advance carries out the next action of an attempt that boots the agent.
func (i *Installer) advance(ctx context.Context, host hardware.Host, attempt hardware.Attempt, work netboot.Work) error {
	s, err := i.beginAttempt(ctx, host, attempt, work)
	if err != nil || s.State != hardware.AttemptRunning || i.hasSucceeded(s) {
		return err
	}
	// The power is read before the session. Example for the other order: the session says Writing, then the agent reports its result and
	// powers the server off, then the power is read as Off. That would look like a loss of power, and the server would be booted again.
	power, powerErr := i.takePower(ctx, host)
	if powerErr != nil {
		power = hardware.PowerUnknown
	}
	// Most calls find a server at work. What is more than waiting is decided by what the API server has: another replica may have stored it just now.
	if s, err := i.options.Store.CachedByUID(ctx, host.UID); err == nil && s.Number == attempt.Number {
		if next := i.decide(host, s, power, powerErr); !next.isChange() {
			return i.performAction(ctx, host, s, next, powerErr)
		}
	}
	if s, err = i.options.Store.ByUID(ctx, host.UID); err != nil {
		return err
	}
	if s.Number != attempt.Number {
		return supersededError("advance attempt", host, &s, attempt)
	}
	return i.performAction(ctx, host, s, i.decide(host, s, power, powerErr), powerErr)
}

// decide returns the next action of the session's attempt.
func (i *Installer) decide(host hardware.Host, s netboot.Session, power hardware.PowerState, powerErr error) action {
	if s.State != hardware.AttemptRunning || isInstalled(s) {
		return action{kind: actionClear}
	}
	now := i.options.Clock()
	return nextAction(facts{
		power: power, powerErr: powerErr, session: s, record: i.recordObservation(s, power, now), refusal: i.lastRefusal(s), lostImage: i.lastLostImage(s), now: now, timeouts: i.options.Timeouts,
		ways: i.waysOf(host),
	})
}

// performAction carries out the action.
func (i *Installer) performAction(ctx context.Context, host hardware.Host, s netboot.Session, next action, powerErr error) error {
	log := i.options.Log.With("host", host.String(), "attempt", s.Number, "step", s.Step)
	if next.isChange() {
		log.Info(string(next.kind), "reason", string(next.reason), "message", next.message)
	}
	switch next.kind {
	case actionWait:
		return i.wait(ctx, host, s)
	case actionClear:
		return i.clearAfterBoot(ctx, host, s)
	case actionReturnError:
		return powerErr
	case actionPowerOff:
		return i.setPower(ctx, host, hardware.TurnOff)
	case actionBootNetwork, actionPowerOn:
		err := i.bootFromNetwork(ctx, host, s, next.kind == actionBootNetwork)
		i.recordBootRefusal(s, err)
		return err
	case actionBootAgain:
		_, err := i.updateSession(ctx, host, s, func(s *netboot.Session) { bootAgain(s, i.options.Clock(), i.options.Timeouts) })
		return err
	case actionSucceed, actionFail:
		return i.end(ctx, host, s, next)
	}
	return nil
}

// end ends the attempt.
func (i *Installer) end(ctx context.Context, host hardware.Host, s netboot.Session, next action) error {
	i.clearAtEnd(ctx, host, s, next)
	i.takeOutAtEnd(ctx, host, s)
	state := hardware.AttemptSucceeded
	if next.kind == actionFail {
		state = hardware.AttemptFailed
	}
	_, err := i.updateSession(ctx, host, s, func(s *netboot.Session) {
		if next.kind == actionSucceed {
			next.message = s.Message // what the agent said of its success
		}
		if endAttempt(s, state, next.reason, next.message); next.isSilent {
			s.SilentBoots = addSilentBoot(*s)
		}
		if next.step != "" {
			s.Step = next.step
		}
	})
	i.dropRecord(host)
	return err
}

// wait does what is to be done for an attempt while the server is at work.
func (i *Installer) wait(ctx context.Context, host hardware.Host, s netboot.Session) error {
	if err := i.bootRefusal(s); err != nil {
		return err
	}
	if err := i.noteLoadProblem(ctx, host, s); err != nil {
		return err
	}
	return i.clearAfterBoot(ctx, host, s)
}

// noteLoadProblem stores the finding that a server got its boot document and asks for no kernel, or has its kernel and registers no agent.
func (i *Installer) noteLoadProblem(ctx context.Context, host hardware.Host, s netboot.Session) error {
	now := i.options.Clock()
	if !s.MustReportMissingKernel(now) && !s.MustReportMissingAgent(now) {
		return nil
	}
	_, err := i.updateSession(ctx, host, s, func(s *netboot.Session) {
		switch {
		case s.MustReportMissingKernel(now):
			s.AddKernelNotRequested(now)
		case s.MustReportMissingAgent(now):
			s.AddNoAgentRegistered(now)
		}
	})
	return err
}

// bootFromNetwork sets the boot override, stores OpenedAt and then requests power-on. newStep is true when the step Booting begins with it.
// When the process is killed in between, the next call does all of it again: setting the override twice does no harm, nor does an
// override for a server that is not powered on.
//
// OpenedAt is stored before the power-on is requested, because the boot service serves the agent only after OpenedAt. Example for the other
// order: the process is killed after the request, the server requests its boot document, receives the script exit, and boots
// what the former tenant left there.
func (i *Installer) bootFromNetwork(ctx context.Context, host hardware.Host, s netboot.Session, newStep bool) error {
	if err := i.checkBootMAC(ctx, host); err != nil {
		return err
	}
	bmc, err := i.options.BMCs.OpenBMC(ctx, i.withBootOrder(host, s))
	if err != nil {
		return err
	}
	isSecureBootOn, err := i.checkSecureBoot(ctx, bmc, host)
	if err != nil {
		return err
	}
	way, boot, err := i.prepareBoot(ctx, bmc, bootSubject{host: host, session: s, boot: nextBoot(s, newStep), isSecureBootOn: isSecureBootOn})
	if err != nil {
		return err
	}
	now := i.options.Clock()
	updated, err := i.updateSession(ctx, host, s, func(s *netboot.Session) {
		if s.OpenedAt = now; newStep || s.Step != hardware.StepBooting {
			// The agent of an earlier boot is gone with the power, and no longer owns the attempt.
			s.Step, s.StepAt, s.Agent = hardware.StepBooting, now, netboot.Agent{}
		}
		s.StepDeadline = now.Add(i.options.Timeouts.OfStep(hardware.StepBooting))
		boot.apply(s, way, now)
	})
	if err != nil || updated.Number != s.Number || updated.State != hardware.AttemptRunning || updated.Step != hardware.StepBooting {
		return err // the attempt has ended or advanced meanwhile: the server is not powered on
	}
	return bmc.SetPower(ctx, hardware.TurnOn)
}
