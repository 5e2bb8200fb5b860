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
func (i *Installer) begin(ctx context.Context, host hardware.Host, attempt hardware.Attempt, work netboot.Work) (netboot.Session, error) {
	const op = "begin attempt"
	if attempt.Number <= 0 || attempt.Deadline.IsZero() {
		return netboot.Session{}, hardware.Errorf(hardware.Invalid, op, host.String(), "attempt %d: expected a number from 1 and a deadline", attempt.Number)
	}
	if mac, err := netboot.ParseMAC(host.BootMAC); work.Operation != hardware.OpInspect && (err != nil || mac != host.BootMAC) {
		return netboot.Session{}, hardware.Errorf(hardware.Invalid, op, host.String(),
			"boot MAC address %q: expected six hexadecimal pairs in lower case with colons", host.BootMAC)
	}
	if s, err := i.options.Store.CachedByUID(ctx, host.UID); err == nil && isBegun(s, attempt, work) {
		return s, nil
	}
	now := i.options.Clock()
	return i.options.Store.Update(ctx, host.UID, func(s *netboot.Session) error {
		switch {
		case s.Number > attempt.Number:
			return superseded(op, host, s, attempt)
		case s.Number < attempt.Number:
			*s = freshSession(s.Inventory, host, attempt, work, now)
			return nil
		}
		// A cancelled attempt that never began has no operation.
		if s.State == hardware.AttemptRunning && s.Work != work {
			return hardware.Errorf(hardware.Conflict, op, host.String(),
				"attempt %d is under way as %s with other particulars: another piece of work needs another number", s.Number, s.Operation)
		}
		return nil
	})
}

// isBegun says whether the session is that of the attempt. It is at every look but the first, and with a store that knows what
// is wanted at that too; what the attempt has come to since is read where that decides.
func isBegun(s netboot.Session, attempt hardware.Attempt, work netboot.Work) bool {
	return s.Number == attempt.Number && s.Work == work
}

// freshSession is the session of a new attempt. What is known about the hardware stays.
func freshSession(known *hardware.Inventory, host hardware.Host, attempt hardware.Attempt, work netboot.Work, now time.Time) netboot.Session {
	return netboot.Session{
		HostUID: host.UID, Namespace: host.Namespace, Name: host.Name, BootMAC: host.BootMAC, Work: work, Since: now, Deadline: attempt.Deadline,
		AttemptStatus: hardware.AttemptStatus{Number: attempt.Number, State: hardware.AttemptRunning, Step: hardware.StepPoweringOff},
		StepAt:        now, Inventory: known,
	}
}

func superseded(op string, host hardware.Host, s *netboot.Session, attempt hardware.Attempt) error {
	return hardware.Errorf(hardware.Conflict, op, host.String(), "attempt %d is over, the host is at attempt %d", attempt.Number, s.Number)
}

// isWritten says whether the agent's word is there that the image is on the disk and verified. An installation has succeeded with
// it; it is kept as Succeeded with the next change, whoever makes that.
func isWritten(s netboot.Session) bool {
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
		if s.Number == seen.Number && s.State == hardware.AttemptRunning && s.Step == seen.Step && s.Boots == seen.Boots {
			change(s)
		}
		return nil
	})
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
