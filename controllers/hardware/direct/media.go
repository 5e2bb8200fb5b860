package direct

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// preparedBoot is what is stored about a boot before the power-on.
type preparedBoot struct {
	// number is that of the boot from a medium; 0 for the network, whose boots the boot service counts.
	number int
	// refused says why a way that is preferred is not used; "" when it is used.
	refused string
}

// apply writes the boot into the session.
func (b preparedBoot) apply(s *netboot.Session, way hardware.BootSource, now time.Time) {
	s.BootWay = ""
	if way == hardware.BootMedia {
		s.BootWay, s.Boots = way, b.number
	}
	if found := &s.Findings.BootWayRefused; b.refused != "" && found.Count == 0 {
		*found = netboot.Finding{Count: 1, At: now, Message: b.refused}
	}
}

// prepareBoot makes the next boot come from the first way that the BMC can do. A refusal that time can mend is an error, and the call is repeated:
// a server whose BMC is busy must not boot in a way that resists less.
//
// The medium has the token of the boot with its number, which is stored with OpenedAt. When the process is killed in between, the next call computes
// the same number and inserts the same URL.
func (i *Installer) prepareBoot(ctx context.Context, bmc hardware.BMC, host hardware.Host, s netboot.Session, newStep bool) (hardware.BootSource, preparedBoot, error) {
	var prepared preparedBoot
	ways := host.BootWays
	if len(ways) == 0 {
		ways = []hardware.BootSource{hardware.BootNetwork}
	}
	for at, way := range ways {
		err := i.prepareWay(ctx, bmc, s, way, nextBoot(s, newStep))
		if err == nil && way == hardware.BootMedia {
			prepared.number = nextBoot(s, newStep)
		}
		if hardware.KindOf(err) != hardware.Unsupported || at == len(ways)-1 {
			return way, prepared, err
		}
		prepared.refused = fmt.Sprintf("the server is not booted by %s, which the NodeProvider prefers, but by %s: %v", way, ways[at+1], err)
		i.options.Log.Warn("the preferred way to boot is not possible", "host", host.String(), "attempt", s.Number, "way", way, "next", ways[at+1], "error", err.Error())
	}
	return "", prepared, nil
}

// prepareWay makes the next boot come from one way.
func (i *Installer) prepareWay(ctx context.Context, bmc hardware.BMC, s netboot.Session, way hardware.BootSource, boot int) error {
	if way == hardware.BootMedia {
		if i.options.MediaURL == nil {
			return hardware.Errorf(hardware.Unsupported, "make a boot medium", s.Namespace+"/"+s.Name, "this installation makes none")
		}
		url, err := i.options.MediaURL(ctx, s, boot)
		if err != nil {
			return err
		}
		if err := bmc.SetVirtualMedia(ctx, url); err != nil {
			return err
		}
	}
	return setBoot(ctx, bmc, s.Work, way)
}

// nextBoot returns the number of the boot from a medium. A power-on that is repeated within the step, because the BMC has dropped the first one, is
// the same boot: another medium would be taken from under a server that is starting already.
func nextBoot(s netboot.Session, newStep bool) int {
	isCounted := !newStep && s.Step == hardware.StepBooting && !s.OpenedAt.IsZero() && !s.OpenedAt.Before(s.StepAt)
	if isCounted && s.BootWay == hardware.BootMedia {
		return s.Boots
	}
	return s.Boots + 1
}

// ejectMedia ejects the boot medium of a host that may have one. Whether it has is not taken from the session alone, because the process may have
// been killed between the insertion and the writing of it.
func ejectMedia(ctx context.Context, bmc hardware.BMC, host hardware.Host, s netboot.Session) error {
	if s.BootWay != hardware.BootMedia && !slices.Contains(host.BootWays, hardware.BootMedia) {
		return nil
	}
	err := bmc.SetVirtualMedia(ctx, "")
	if hardware.KindOf(err) == hardware.Unsupported {
		return nil // there is nothing to eject
	}
	return err
}

// ejectAtEnd ejects the boot medium when the attempt ends. A BMC that does not answer does not keep the attempt from ending: the medium's URL ends
// with the attempt, and the next attempt takes the medium out.
func (i *Installer) ejectAtEnd(ctx context.Context, host hardware.Host, s netboot.Session) {
	if s.BootWay != hardware.BootMedia && !slices.Contains(host.BootWays, hardware.BootMedia) {
		return
	}
	bmc, err := i.options.BMCs.OpenBMC(ctx, host.BMC)
	if err == nil {
		err = ejectMedia(ctx, bmc, host, s)
	}
	if err != nil {
		i.options.Log.Warn("the boot medium is not ejected; its URL is no longer valid, and the next attempt takes it out", "host", host.String(), "attempt", s.Number, "error", err.Error())
	}
}
