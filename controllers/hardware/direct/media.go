package direct

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// bootSubject is what a boot is prepared for.
type bootSubject struct {
	host    hardware.Host
	session netboot.Session
	// boot is the number that the boot has if the server gets an image of its own.
	boot int
	// isSecureBootOn is true when the firmware refuses what is not signed.
	isSecureBootOn bool
}

// preparedBoot is what is stored about a boot before the power-on.
type preparedBoot struct {
	// number is that of the boot with an image of the server's own; 0 for the network, whose boots the boot service counts.
	number int
	// refused says why a way that is preferred is not used, silent the same of ways in which no agent came up, and plain why a pinned URL is one of HTTP.
	// "" means that there is nothing to say.
	refused, silent, plain string
	// isVerified says that the BMC's certificate is verified.
	isVerified bool
}

// apply writes the boot into the session.
func (b preparedBoot) apply(s *netboot.Session, way hardware.BootSource, now time.Time) {
	s.BootWay, s.Channel = "", hardware.ChannelOf(way, b.isVerified, b.plain == "")
	if way.HasOwnImage() {
		s.BootWay, s.ImageBoots, s.Boots = way, s.ImageBoots+b.number-s.Boots, b.number
	}
	for message, found := range map[string]*netboot.Finding{b.refused: &s.Findings.BootWayRefused, b.silent: &s.Findings.BootWaySilent, b.plain: &s.Findings.BootNotEncrypted} {
		if message != "" && found.Message != message {
			*found = netboot.Finding{Count: found.Count + 1, At: now, Message: message}
		}
	}
}

// prepareBoot makes the next boot come from the first way that the BMC can do and that was not silent. A refusal that time can mend is an error, and the
// call is repeated: a server whose BMC is busy must not boot in a way that resists less. A BMC that cannot fetch the medium is not mended by time.
//
// An image of the server's own has the token of the boot with its number, which is stored with OpenedAt. When the process is killed in between, the next
// call computes the same number and gives the BMC the same URL.
func (i *Installer) prepareBoot(ctx context.Context, bmc hardware.BMC, subject bootSubject) (hardware.BootSource, preparedBoot, error) {
	prepared := preparedBoot{isVerified: !subject.host.BMC.InsecureSkipVerify}
	host, s := subject.host, subject.session
	ways, skipped := orderedWays(i.waysOf(host), s.SilentBoots)
	if len(skipped) > 0 {
		prepared.silent = fmt.Sprintf("the server is not booted by %s, which the NodeProvider prefers, but by %s: no agent came up in the last boots by %s: look at the message of the "+
			"attempt that failed, at the server's console, and at the boot service's log", joinWays(skipped), ways[0], s.SilentBoots.Way)
	}
	for at, way := range ways {
		plain, err := i.prepareWay(ctx, bmc, subject, way)
		if err == nil && way.HasOwnImage() {
			prepared.number, prepared.plain = subject.boot, plain
		}
		if way == hardware.BootMedia {
			i.recordLostImage(s, err)
		}
		if hardware.KindOf(err) != hardware.Unsupported && !i.isImageLost(s, err) || at == len(ways)-1 {
			return way, prepared, err
		}
		if len(host.BootWays) > 0 { // otherwise nobody has asked for it
			prepared.refused = fmt.Sprintf("the server is not booted by %s, which the NodeProvider prefers, but by %s: %v", way, ways[at+1], err)
		}
		i.options.Log.Warn("the preferred way to boot is not possible", "host", host.String(), "attempt", s.Number, "way", way, "next", ways[at+1], "error", err.Error())
	}
	return "", prepared, nil
}

func joinWays(ways []hardware.BootSource) string {
	var names []string
	for _, way := range ways {
		names = append(names, string(way))
	}
	return strings.Join(names, " and ")
}

// prepareWay makes the next boot come from one way, after the images of the other ways are taken out. plain says why a pinned URL is one of HTTP.
func (i *Installer) prepareWay(ctx context.Context, bmc hardware.BMC, subject bootSubject, way hardware.BootSource) (plain string, err error) {
	if way.HasOwnImage() && subject.isSecureBootOn {
		return "", hardware.Errorf(hardware.Unsupported, "boot the agent", subject.host.String(), "Secure Boot is on, and the image that is made for a boot is not signed")
	}
	if err := i.takeOutImages(ctx, bmc, subject.host, slices.DeleteFunc(i.imageWays(subject.host, subject.session), func(other hardware.BootSource) bool { return other == way })); err != nil {
		return "", err
	}
	switch way {
	case hardware.BootPinned:
		return i.pinProgram(ctx, bmc, subject)
	case hardware.BootMedia:
		if err := i.insertMedium(ctx, bmc, subject); err != nil {
			return "", err
		}
	}
	return "", setBoot(ctx, bmc, subject.session.Work, way)
}

// insertMedium inserts the boot medium.
func (i *Installer) insertMedium(ctx context.Context, bmc hardware.BMC, subject bootSubject) error {
	s := subject.session
	if i.options.MediaURLs == nil {
		return hardware.Errorf(hardware.Unsupported, "make a boot medium", s.Namespace+"/"+s.Name, "this installation makes none")
	}
	plain, secure, err := i.options.MediaURLs(ctx, s, subject.boot)
	if err != nil {
		return err
	}
	return bmc.SetVirtualMedia(ctx, plain, secure)
}

// pinProgram pins the URL of the EFI program, by HTTPS where the firmware can be told to trust the boot service.
func (i *Installer) pinProgram(ctx context.Context, bmc hardware.BMC, subject bootSubject) (plain string, err error) {
	s := subject.session
	if i.options.ProgramURLs == nil {
		return "", hardware.Errorf(hardware.Unsupported, "make a pinned URL", s.Namespace+"/"+s.Name, "this installation makes none")
	}
	url, secure, err := i.options.ProgramURLs(ctx, s, subject.boot)
	if err != nil {
		return "", err
	}
	switch problem, err := i.trustBootService(ctx, bmc, secure); {
	case err != nil:
		return "", err
	case problem != "":
		plain = "the firmware loads the agent by HTTP from its pinned URL, so that who listens on the provisioning network can read the token: " + problem
	default:
		url = secure
	}
	if s.Operation == hardware.OpErase || s.IsAgentInspection() {
		return plain, bmc.SetPinnedBootAlways(ctx, url)
	}
	return plain, bmc.SetPinnedBootOnce(ctx, url)
}

// trustBootService makes the firmware trust the authorities of the boot service's certificate. problem says why it cannot.
func (i *Installer) trustBootService(ctx context.Context, bmc hardware.BMC, secureURL string) (problem string, err error) {
	var authorities []byte
	if i.options.BootAuthorities != nil && secureURL != "" {
		if authorities, err = i.options.BootAuthorities(ctx); err != nil {
			return "", hardware.Errorf(hardware.Busy, "read the boot service's authorities", "", "%w", err)
		}
	}
	// Those that are gone are removed also where there is none any more.
	err = bmc.SetBootAuthorities(ctx, authorities)
	switch {
	case len(authorities) == 0 && (err == nil || hardware.KindOf(err) == hardware.Unsupported):
		return "the boot service has no HTTPS (boot.tls.address of the manager's configuration)", nil
	case hardware.KindOf(err) == hardware.Unsupported:
		return err.Error(), nil
	}
	return "", err
}

// nextBoot returns the number of the boot with an image of the server's own. A power-on that is repeated within the step, because the BMC has dropped the
// first one, is the same boot: another image would be taken from under a server that is starting already.
func nextBoot(s netboot.Session, newStep bool) int {
	isCounted := !newStep && s.Step == hardware.StepBooting && !s.OpenedAt.IsZero() && !s.OpenedAt.Before(s.StepAt)
	if isCounted && s.BootWay.HasOwnImage() {
		return s.Boots
	}
	return s.Boots + 1
}

// imageWays returns the ways whose images a host may have. That is not taken from the session alone, because the process may have been killed between
// the insertion and the writing of it.
func (i *Installer) imageWays(host hardware.Host, s netboot.Session) []hardware.BootSource {
	var ways []hardware.BootSource
	for _, way := range []hardware.BootSource{hardware.BootMedia, hardware.BootPinned} {
		if s.BootWay == way || slices.Contains(i.waysOf(host), way) {
			ways = append(ways, way)
		}
	}
	return ways
}

// takeOutImages takes out the images of the ways, of this attempt and of earlier ones.
func (i *Installer) takeOutImages(ctx context.Context, bmc hardware.BMC, host hardware.Host, ways []hardware.BootSource) error {
	for _, way := range ways {
		var err error
		if way == hardware.BootMedia {
			err = bmc.SetVirtualMedia(ctx)
		} else {
			err = bmc.ClearPinnedBoot(ctx)
		}
		if hardware.KindOf(err) == hardware.Unsupported { // there is nothing to take out, or no way to do it
			i.options.Log.Info("no boot image can be taken out", "host", host.String(), "way", way, "error", err.Error())
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeOutAtEnd takes out the images of a host when its attempt ends. A BMC that does not answer does not keep the attempt from ending: the URL of an image
// ends with the attempt, and the next attempt takes it out.
func (i *Installer) takeOutAtEnd(ctx context.Context, host hardware.Host, s netboot.Session) {
	ways := i.imageWays(host, s)
	if len(ways) == 0 {
		return
	}
	bmc, err := i.options.BMCs.OpenBMC(ctx, host.BMC)
	if err == nil {
		err = i.takeOutImages(ctx, bmc, host, ways)
	}
	if err != nil {
		i.options.Log.Warn("the boot image is not taken out; its URL is no longer valid, and the next attempt takes it out", "host", host.String(), "attempt", s.Number, "error", err.Error())
	}
}
