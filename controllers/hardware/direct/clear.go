package direct

import (
	"context"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// bootID is one boot of one attempt.
type bootID struct {
	attempt int64
	boots   int
}

// setBoot sets the boot override for a boot of the agent. For an erase or an inspection it stays until that has succeeded, where the BMC offers that.
//
// Example for an override of one boot: a released server is powered on for its erase, its network boot fails or it loses its power in the
// self-test, and it starts again. It would boot the former tenant's system, with that tenant's credentials.
func setBoot(ctx context.Context, bmc hardware.BMC, work netboot.Work, source hardware.BootSource) error {
	if work.Operation == hardware.OpErase || work.IsAgentInspection() {
		return bmc.SetBootAlways(ctx, source)
	}
	return bmc.SetBootOnce(ctx, source)
}

// needsClearing reports whether the boot override has served its purpose and may still be there: the agent of an installation has registered.
//
// Some BMCs know only an override that stays. Without this the installed system would boot from the network first at every reboot, for as long
// as the server has it. The agent reboots as soon as it has reported its result, so the override is cleared before, while it works; the
// attempt succeeds after that. Clearing twice does no harm, so nothing about it is stored.
func needsClearing(s netboot.Session) bool {
	if s.Operation != hardware.OpInstall || s.State != hardware.AttemptRunning {
		return false
	}
	switch s.Step {
	case hardware.StepRegistered, hardware.StepWriting, hardware.StepVerifying, hardware.StepFinishing:
		return true
	}
	return false
}

// isCleared reports whether this process has cleared the override of the session's boot.
func (i *Installer) isCleared(s netboot.Session) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cleared[s.HostUID] == bootID{attempt: s.Number, boots: s.Boots}
}

// clearAfterBoot clears the override once the agent of an installation has registered.
func (i *Installer) clearAfterBoot(ctx context.Context, host hardware.Host, s netboot.Session) error {
	if !needsClearing(s) || i.hasSucceeded(s) {
		return nil
	}
	return i.clearBoot(ctx, host, s)
}

// clearAtEnd clears the override of an erase that succeeds with the action, or of an inspection that ends with it. An override that stays does no
// harm, because the server is off, or will be, and the next boot sets it again: a failure is logged.
//
// That of an inspection is cleared after a failure too. Without it: the inspection of a free server fails, its BMC knows only overrides that stay, and
// whoever powers the server on to look at it finds that it does not boot its disk.
func (i *Installer) clearAtEnd(ctx context.Context, host hardware.Host, s netboot.Session, next action) {
	isErased := next.kind == actionSucceed && s.Operation == hardware.OpErase && s.Boots > 0
	if isInspected := s.IsAgentInspection() && !s.OpenedAt.IsZero(); !isErased && !isInspected {
		return
	}
	if err := i.clearBoot(ctx, host, s); err != nil {
		i.options.Log.Info("boot override not cleared", "host", host.String(), "attempt", s.Number, "error", err.Error())
	}
}

// clearBoot clears the override of the session's boot once. An override that cannot be cleared is logged and does not hold up the
// attempt: the boot service answers the server that it shall boot its disk.
func (i *Installer) clearBoot(ctx context.Context, host hardware.Host, s netboot.Session) error {
	if i.isCleared(s) {
		return nil
	}
	bmc, err := i.options.BMCs.OpenBMC(ctx, i.withBootOrder(host, s))
	if err != nil {
		return err
	}
	err = bmc.ClearBoot(ctx)
	if hardware.KindOf(err) == hardware.Unsupported {
		i.options.Log.Warn("boot override not cleared; the server boots from the network first", "host", host.String(), "attempt", s.Number, "error", err.Error())
		err = nil
	}
	// The override goes first: without its URL it would be one of UEFI HTTP boot from whatever DHCP names.
	if err == nil {
		err = i.takeOutImages(ctx, bmc, host, i.imageWays(host, s))
	}
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cleared[s.HostUID] = bootID{attempt: s.Number, boots: s.Boots}
	return nil
}

// hasSucceeded reports whether the attempt is shown as succeeded although the session still says Running: the image is on the disk, and the
// override is cleared or could not be cleared before the deadline. What the agent has achieved is never lost.
func (i *Installer) hasSucceeded(s netboot.Session) bool {
	return isInstalled(s) && (i.isCleared(s) || !i.options.Clock().Before(s.Deadline))
}
