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

// begin finds the attempt's session or makes it. An attempt that is over, or that does something else, is Conflict.
func (i *Installer) begin(ctx context.Context, host hardware.Host, attempt hardware.Attempt, work netboot.Session) (netboot.Session, error) {
	const op = "begin attempt"
	if attempt.Number <= 0 || attempt.Deadline.IsZero() {
		return netboot.Session{}, hardware.Errorf(hardware.Invalid, op, host.String(), "attempt %d: expected a number from 1 and a deadline", attempt.Number)
	}
	if mac, err := netboot.ParseMAC(host.BootMAC); work.Operation != hardware.OpInspect && (err != nil || mac != host.BootMAC) {
		return netboot.Session{}, hardware.Errorf(hardware.Invalid, op, host.String(),
			"boot MAC address %q: expected six hexadecimal pairs in lower case with colons", host.BootMAC)
	}
	if s, err := i.options.Store.Recent(ctx, host.UID); err == nil && begun(s, attempt, work) {
		return s, nil
	}
	now := i.options.Clock()
	return i.options.Store.Update(ctx, host.UID, func(s *netboot.Session) error {
		switch {
		case s.Attempt > attempt.Number:
			return superseded(op, host, s, attempt)
		case s.Attempt < attempt.Number:
			fresh(s, host, attempt, work, now)
			return nil
		}
		// A cancelled attempt that never began has no operation.
		if s.State == hardware.AttemptRunning && !sameWork(s, work) {
			return hardware.Errorf(hardware.Conflict, op, host.String(),
				"attempt %d is under way as %s with other particulars: another piece of work needs another number", s.Attempt, s.Operation)
		}
		return nil
	})
}

// begun: an attempt is found begun at every look but the first; what it has come to since is read where that decides.
func begun(s netboot.Session, attempt hardware.Attempt, work netboot.Session) bool {
	return s.Attempt == attempt.Number && sameWork(&s, work)
}

// fresh makes s the session of a new attempt. What is known about the hardware stays.
func fresh(s *netboot.Session, host hardware.Host, attempt hardware.Attempt, work netboot.Session, now time.Time) {
	work.HostUID, work.Namespace, work.Name, work.BootMAC = host.UID, host.Namespace, host.Name, host.BootMAC
	work.Attempt, work.Deadline = attempt.Number, attempt.Deadline
	work.State, work.Step, work.StartedAt, work.StepAt = hardware.AttemptRunning, hardware.StepPoweringOff, now, now
	work.Inventory = s.Inventory
	*s = work
}

func sameWork(s *netboot.Session, work netboot.Session) bool {
	return s.Operation == work.Operation && s.Image == work.Image && s.RootDevice == work.RootDevice && s.Erase == work.Erase
}

func superseded(op string, host hardware.Host, s *netboot.Session, attempt hardware.Attempt) error {
	return hardware.Errorf(hardware.Conflict, op, host.String(), "attempt %d is over, the host is at attempt %d", attempt.Number, s.Attempt)
}

// written: the agent's word is there that the image is on the disk and verified. An installation has succeeded with it; it is
// written as Succeeded with the next change, whoever makes that.
func written(s netboot.Session) bool {
	return s.Operation == hardware.OpInstall && s.State == hardware.AttemptRunning && s.Step == hardware.StepFinishing
}

// settle ends the attempt. The step stays: it says how far the attempt came.
func settle(s *netboot.Session, state hardware.AttemptState, reason hardware.Reason, message string) {
	s.State, s.Reason, s.Message = state, reason, message
}

// change applies the change if the session is still as the decision saw it: same attempt, running, same step. Otherwise
// nothing is written, and the next call decides anew.
func (i *Installer) change(ctx context.Context, host hardware.Host, seen netboot.Session, change func(*netboot.Session)) (netboot.Session, error) {
	return i.options.Store.Update(ctx, host.UID, func(s *netboot.Session) error {
		if s.Attempt == seen.Attempt && s.State == hardware.AttemptRunning && s.Step == seen.Step && s.Boots == seen.Boots {
			change(s)
		}
		return nil
	})
}

// quietSince is when the host's agent last reported something new, as far as we saw.
func (i *Installer) quietSince(s netboot.Session, now time.Time) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	last, known := i.heard[s.HostUID]
	if !known || last.attempt != s.Attempt || last.boots != s.Boots || last.step != s.Step || last.bytes != s.DoneBytes {
		last = heard{attempt: s.Attempt, boots: s.Boots, step: s.Step, bytes: s.DoneBytes, at: now}
		i.heard[s.HostUID] = last
	}
	return last.at
}

func (i *Installer) forget(host hardware.Host) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.heard, host.UID)
}

// digestBytes are the lengths of the digests that an image may be pinned with.
var digestBytes = map[string]int{"sha256": 32, "sha512": 64}

func checkSpec(host hardware.Host, spec hardware.InstallSpec) error {
	const op = "install"
	image, err := url.Parse(spec.Image.URL)
	if err != nil || image.Host == "" || (image.Scheme != "http" && image.Scheme != "https") {
		// The URL may carry a token, so it is not printed.
		return hardware.Errorf(hardware.Invalid, op, host.String(), "the image's URL must be http or https with a host")
	}
	algorithm, digest, _ := strings.Cut(spec.Image.Checksum, ":")
	if raw, err := hex.DecodeString(digest); err != nil || len(raw) == 0 || len(raw) != digestBytes[algorithm] {
		return hardware.Errorf(hardware.Invalid, op, host.String(), "checksum %q: expected sha256:HEX or sha512:HEX of the file as served", spec.Image.Checksum)
	}
	if formats := []string{"raw", "raw.gz", "raw.zst"}; !slices.Contains(formats, spec.Image.Format) {
		return hardware.Errorf(hardware.Unsupported, op, host.String(), "image format %q: expected one of %v", spec.Image.Format, formats)
	}
	return nil
}
