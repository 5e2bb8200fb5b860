package direct

import (
	"context"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// beginAttempt returns the session of the attempt, and makes it when it does not exist. It fails with Conflict when the host is at a later
// attempt, or when the attempt is running with other work.
func (i *Installer) beginAttempt(ctx context.Context, host hardware.Host, attempt hardware.Attempt, work netboot.Work) (netboot.Session, error) {
	const op = "begin attempt"
	if attempt.Number <= 0 || attempt.Deadline.IsZero() {
		return netboot.Session{}, hardware.Errorf(hardware.Invalid, op, host.String(), "attempt %d: expected a number from 1 and a deadline", attempt.Number)
	}
	if mac, err := netboot.ParseMAC(host.BootMAC); work.NeedsAgent() && (err != nil || mac != host.BootMAC) {
		return netboot.Session{}, hardware.Errorf(hardware.Invalid, op, host.String(),
			"boot MAC address %q: expected six hexadecimal pairs in lower case with colons", host.BootMAC)
	}
	if s, err := i.options.Store.CachedByUID(ctx, host.UID); err == nil && hasBegun(s, attempt, work) {
		return s, nil
	}
	now := i.options.Clock()
	return i.options.Store.Update(ctx, host.UID, func(s *netboot.Session) error {
		switch {
		case s.Number > attempt.Number:
			return supersededError(op, host, s, attempt)
		case s.Number < attempt.Number:
			*s = newSession(*s, host, attempt, work, now)
			return nil
		}
		// An attempt that was cancelled before it began has ended and has no work to compare.
		if s.State == hardware.AttemptRunning && !s.IsSame(work) {
			return attemptConflict(op, host,
				"attempt %d is under way as %s with other particulars: another piece of work needs another number", s.Number, s.Operation)
		}
		return nil
	})
}

// hasBegun reports whether the session is that of the attempt. A cached session is enough for this: whatever depends on the progress
// of the attempt reads the session again, and then also finds a later attempt.
func hasBegun(s netboot.Session, attempt hardware.Attempt, work netboot.Work) bool {
	return s.Number == attempt.Number && s.IsSame(work)
}

// newSession returns the session of a new attempt. It keeps what is known of the hardware of the host, and goes on with the silent boots of a failed
// attempt.
func newSession(before netboot.Session, host hardware.Host, attempt hardware.Attempt, work netboot.Work, now time.Time) netboot.Session {
	var silent netboot.SilentBoots
	if before.State == hardware.AttemptFailed {
		silent = before.SilentBoots
	}
	return netboot.Session{
		SilentBoots: silent, BootOrder: before.BootOrder,
		HostUID: host.UID, Namespace: host.Namespace, Name: host.Name, BootMAC: host.BootMAC, Work: work, Since: now, Deadline: attempt.Deadline,
		AttemptStatus: hardware.AttemptStatus{Number: attempt.Number, State: hardware.AttemptRunning, Step: hardware.StepPoweringOff},
		StepAt:        now, Inventory: before.Inventory, Disks: before.Disks,
	}
}

func supersededError(op string, host hardware.Host, s *netboot.Session, attempt hardware.Attempt) error {
	return attemptConflict(op, host, "attempt %d is over, the host is at attempt %d", attempt.Number, s.Number)
}

// attemptConflict returns the error of a call that is not for the attempt under way.
func attemptConflict(op string, host hardware.Host, format string, args ...any) error {
	err := hardware.Errorf(hardware.Conflict, op, host.String(), format, args...)
	err.Reason = hardware.ReasonAttemptConflict
	return err
}

// isInstalled reports whether the agent has reported that the image is on the disk and verified. The installation has then succeeded.
// The session still says Running; the next change of it stores Succeeded.
//
// Only the step Finishing counts. Example: the power fails at Verifying, when the digest is not yet compared and the first MiB is not yet
// written. If Verifying counted, the Machine would wait for a node to join from a disk that does not boot.
func isInstalled(s netboot.Session) bool {
	return s.Operation == hardware.OpInstall && s.State == hardware.AttemptRunning && s.Step == hardware.StepFinishing
}

// endAttempt sets the final state of the attempt. The step does not change: it says how far the attempt came.
func endAttempt(s *netboot.Session, state hardware.AttemptState, reason hardware.Reason, message string) {
	s.State, s.Reason, s.Message = state, reason, message
}

// updateSession applies the change if the session is still the one that the decision was made for: the same attempt, running, at the
// same step and boot. Otherwise it stores nothing, and the next call decides again.
//
// Example: the process reads a session at Loading and decides that no agent has registered in time. Meanwhile the server fetches its boot
// document again, which counts a boot and begins the step Loading again. Without this check a server that is starting would fail.
func (i *Installer) updateSession(ctx context.Context, host hardware.Host, observed netboot.Session, change func(*netboot.Session)) (netboot.Session, error) {
	return i.options.Store.Update(ctx, host.UID, func(s *netboot.Session) error {
		if s.Number == observed.Number && s.State == hardware.AttemptRunning && s.Step == observed.Step && s.Boots == observed.Boots {
			change(s)
		}
		return nil
	})
}

// attemptRecord is what this process has observed of an attempt. It is not stored: after a restart the time-outs of the agent and of
// the power-on begin again, within the deadline of the attempt.
type attemptRecord struct {
	attempt int64
	boots   int
	step    hardware.Step
	stepAt  time.Time
	bytes   int64
	// lastProgress is when this process first observed the current number of bytes, or the step if there was none since.
	lastProgress time.Time
	// firstObserved is when this process first observed the step.
	firstObserved time.Time
	// wasPoweredOn is true when this process has observed PowerOn during the step.
	wasPoweredOn bool
}

// recordObservation adds an observation of the attempt to its record and returns the record.
func (i *Installer) recordObservation(s netboot.Session, power hardware.PowerState, now time.Time) attemptRecord {
	i.mu.Lock()
	defer i.mu.Unlock()
	record := i.records[s.HostUID]
	if record.attempt != s.Number || record.boots != s.Boots || record.step != s.Step || !record.stepAt.Equal(s.StepAt) {
		record = attemptRecord{attempt: s.Number, boots: s.Boots, step: s.Step, stepAt: s.StepAt, bytes: s.DoneBytes, lastProgress: now, firstObserved: now}
	}
	if now.Before(record.lastProgress) { // the clock was set back
		record.lastProgress, record.firstObserved = now, now
	}
	if record.bytes != s.DoneBytes {
		record.bytes, record.lastProgress = s.DoneBytes, now
	}
	if power == hardware.PowerOn {
		record.wasPoweredOn = true
		delete(i.refusals, s.HostUID) // the server is on, however the BMC answered
	}
	i.records[s.HostUID] = record
	return record
}

// dropRecord removes the record of the host's attempt.
func (i *Installer) dropRecord(host hardware.Host) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.records, host.UID)
	delete(i.refusals, host.UID)
	delete(i.lostImages, host.UID)
}

// reportedStep returns the step to show. The session has one step, Booting, from the request for power-on until the server fetches its boot
// document; while the server has not been observed on, PoweringOn is shown instead.
func reportedStep(s netboot.Session, power hardware.PowerState, wasPoweredOn bool) hardware.Step {
	if s.State == hardware.AttemptRunning && s.Step == hardware.StepBooting && power != hardware.PowerOn && (!wasPoweredOn || power == hardware.PowerOff) {
		return hardware.StepPoweringOn
	}
	return s.Step
}

// digestLengths are the lengths in bytes of the digests that an image may be pinned by.
var digestLengths = map[string]int{"sha256": 32, "sha512": 64}

// validateSpec refuses an installation that cannot succeed.
func validateSpec(host hardware.Host, spec hardware.InstallSpec) error {
	const op = "install"
	image, err := url.Parse(spec.Image.URL)
	if err != nil || image.Host == "" || (image.Scheme != "http" && image.Scheme != "https") {
		// The URL may contain a token, so it is not printed.
		return hardware.Errorf(hardware.Invalid, op, host.String(), "the image's URL must be http or https with a host")
	}
	algorithm, digest, _ := strings.Cut(spec.Image.Checksum, ":")
	if raw, err := hex.DecodeString(digest); err != nil || len(raw) == 0 || len(raw) != digestLengths[algorithm] {
		return hardware.Errorf(hardware.Invalid, op, host.String(), "checksum %q: expected sha256:HEX or sha512:HEX of the file as served", spec.Image.Checksum)
	}
	if formats := []string{"raw", "raw.gz", "raw.zst"}; !slices.Contains(formats, spec.Image.Format) {
		return hardware.Errorf(hardware.Unsupported, op, host.String(), "image format %q: expected one of %v", spec.Image.Format, formats)
	}
	if beyond := spec.RootDevice.HintsBeyond(hardware.AgentHints()); len(beyond) > 0 {
		return hardware.Errorf(hardware.Unsupported, op, host.String(), "the agent follows no root device hints %v: another disk could be overwritten", beyond)
	}
	return nil
}
