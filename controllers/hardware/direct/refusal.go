package direct

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// bootRefusal is why the server could not be booted from the network in an attempt.
type bootRefusal struct {
	attempt int64
	err     error
}

// recordBootRefusal keeps the error of a try to boot the server, or removes it when there was none.
//
// Without it: the BMC refuses the power-on, which is requested again after PowerOnRetry; the calls in between only wait and succeed, so the
// refusal never lasts; and after the time-out the attempt fails because the BMC accepted a power-on that it refused every time.
func (i *Installer) recordBootRefusal(s netboot.Session, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if delete(i.refusals, s.HostUID); err != nil {
		i.refusals[s.HostUID] = bootRefusal{attempt: s.Number, err: err}
	}
}

// lostImageTime is how long the BMC must have been unable to fetch the boot medium before the next way is tried. A boot service that is started again, or
// a replica that takes its address over, is back within a minute.
const lostImageTime = 2 * time.Minute

// lostImage is that the BMC could not fetch the boot medium in an attempt.
type lostImage struct {
	attempt int64
	since   time.Time
	err     error
}

// recordLostImage keeps the error of a boot medium that the BMC could not fetch, and since when it could not, or removes it when the medium is inserted.
//
// Without it: the network of the BMCs does not lead to the boot service, each insertion ends with an answer that says to try again, and a server whose
// NodeProvider names a second way that works is never installed.
func (i *Installer) recordLostImage(s netboot.Session, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	lost := i.lostImages[s.HostUID]
	switch {
	case err == nil:
		delete(i.lostImages, s.HostUID)
		return
	case hardware.ReasonOf(err) != hardware.ReasonBootImageNotFetched:
		return // such as that it is being fetched
	case lost.err == nil || lost.attempt != s.Number || lost.since.After(i.options.Clock()):
		lost = lostImage{attempt: s.Number, since: i.options.Clock()}
	}
	lost.err = err
	i.lostImages[s.HostUID] = lost
}

// isImageLost reports whether the error is that the BMC could not fetch the boot medium, and it could not for so long that the next way is to be tried.
func (i *Installer) isImageLost(s netboot.Session, err error) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return hardware.ReasonOf(err) == hardware.ReasonBootImageNotFetched && i.options.Clock().Sub(i.lostImages[s.HostUID].since) >= lostImageTime
}

// lastLostImage returns why the BMC could not fetch the boot medium in this attempt; nil when it could, or was not asked to.
func (i *Installer) lastLostImage(s netboot.Session) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if lost := i.lostImages[s.HostUID]; lost.attempt == s.Number {
		return lost.err
	}
	return nil
}

// lastRefusal returns why the last try to boot the server in this attempt failed; nil when it did not.
func (i *Installer) lastRefusal(s netboot.Session) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if refusal := i.refusals[s.HostUID]; refusal.attempt == s.Number {
		return refusal.err
	}
	return nil
}

// bootRefusal returns the error of a call that waits until the server can be powered on again: the call has not succeeded either.
func (i *Installer) bootRefusal(s netboot.Session) error {
	if s.Step != hardware.StepBooting {
		return nil
	}
	return i.lastRefusal(s)
}

// checkSecureBoot returns whether Secure Boot is on, and an error when the server's firmware would refuse what it is to boot. It asks the BMC before each boot, because a person may have
// changed the setting since the server was inspected.
//
// Without it: the firmware refuses iPXE, or the boot medium, and goes on with the next boot device. The attempt fails after the time-out as one whose server
// never asked for its boot document, and the one place that says why is the server's console.
//
// Where the BMC gives no answer the server is booted: many have none, and one that cannot be reached cannot power it on either.
func (i *Installer) checkSecureBoot(ctx context.Context, bmc hardware.BMC, host hardware.Host) (isOn bool, err error) {
	if host.HasSignedBoot && !slices.ContainsFunc(i.waysOf(host), hardware.BootSource.HasOwnImage) {
		return false, nil // it makes no difference
	}
	state, setting, err := bmc.SecureBoot(ctx)
	if err != nil {
		i.options.Log.Info("whether Secure Boot is on is unknown", "host", host.String(), "error", err.Error())
		return false, nil
	}
	if state != hardware.SecureBootOn || host.HasSignedBoot {
		return state == hardware.SecureBootOn, nil
	}
	refused := hardware.Errorf(hardware.Conflict, "boot the agent", host.String(), "Secure Boot is on, and what the server would boot is not signed, so that it is not powered on: turn it off ("+
		"%s at its BMC, or the firmware's setup), or set spec.redfish.netboot.secureBoot of the NodeProvider to Signed where the provisioning network serves signed programs", setting)
	refused.Reason = hardware.ReasonSecureBootOn
	return true, refused
}

// checkBootMAC returns an error when another host has the boot MAC address of the host.
//
// Without it: two hosts have one address that software has assigned, so that nobody can tell whether they are one server. The boot service
// serves neither of them, the server is powered on, and the attempt fails after the time-out as one whose server never asked for its boot
// document.
func (i *Installer) checkBootMAC(ctx context.Context, host hardware.Host) error {
	_, err := i.options.Store.CachedByMAC(ctx, host.BootMAC)
	var conflict *hardware.Error
	if !errors.As(err, &conflict) || conflict.Kind != hardware.Conflict {
		return nil // the boot service asks again, and says so in its log
	}
	return &hardware.Error{Kind: hardware.Conflict, Reason: hardware.ReasonBootMACConflict, Op: "boot from the network", Target: host.String(), Err: conflict.Err}
}
