package redfish

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const opBoot = "set boot override"

// bootTargets are the Redfish targets for a boot source. The first one that the BMC offers is used.
var bootTargets = map[hardware.BootSource][]schemas.BootSource{
	hardware.BootNetwork: {schemas.PxeBootSource},
	hardware.BootDisk:    {schemas.HddBootSource},
	hardware.BootMedia:   {schemas.CdBootSource, schemas.UsbBootSource},
}

// SetBootOnce implements hardware.BMC. It reads the override back and fails with Unsupported or Conflict when the BMC reports none or
// another one. Example: the firmware accepts the override Pxe and drops it. The server would then boot the disk of the former tenant
// instead of the agent, and nobody would notice before the time-out of the boot.
func (b *bmc) SetBootOnce(ctx context.Context, source hardware.BootSource) error {
	return b.call(ctx, opBoot, func(c *conn) error {
		s, err := c.serverSystem()
		if err != nil {
			return err
		}
		target, err := c.bootTarget(s, source)
		if err != nil {
			return err
		}
		if hasOverride(s, target) {
			return nil
		}
		if err := c.patchBootOverride(s, target); err != nil {
			return err
		}
		after, err := c.serverSystem()
		if err != nil {
			return err
		}
		return c.checkBootOverride(after, target)
	})
}

// hasOverride reports whether the override for the next boot is the target.
func hasOverride(s *system, target schemas.BootSource) bool {
	return s.Boot.BootSourceOverrideTarget == target && s.Boot.BootSourceOverrideEnabled == schemas.OnceBootSourceOverrideEnabled
}

// bootTarget returns the Redfish target for the boot source.
func (c *conn) bootTarget(s *system, source hardware.BootSource) (schemas.BootSource, error) {
	targets, ok := bootTargets[source]
	if !ok {
		return "", hardware.Errorf(hardware.Invalid, opBoot, c.bmc.endpoint.Address, "unknown boot source %q", source)
	}
	if len(s.links.Boot) == 0 {
		return "", hardware.Errorf(hardware.Unsupported, opBoot, c.bmc.endpoint.Address, "the system %s has no boot override", s.ODataID)
	}
	offered := s.Boot.AllowableBootSourceOverrideTargetValues
	if len(offered) == 0 {
		return targets[0], nil
	}
	for _, target := range targets {
		if slices.Contains(offered, target) {
			return target, nil
		}
	}
	return "", hardware.Errorf(hardware.Unsupported, opBoot, c.bmc.endpoint.Address, "the BMC offers the boot targets %v, not %s", offered, targets[0])
}

// patchBootOverride sends the override. It includes the boot mode only where the BMC has one (older firmware of Supermicro has none and
// refuses it), and sends it without the mode when that is refused. When the ETag is stale it reads the system again once, and then removes
// the prefix "W/", because some BMCs return weak ETags and compare them strongly.
func (c *conn) patchBootOverride(s *system, target schemas.BootSource) error {
	boot := map[string]any{
		"BootSourceOverrideEnabled": schemas.OnceBootSourceOverrideEnabled,
		"BootSourceOverrideTarget":  target,
	}
	if _, has := s.links.Boot["BootSourceOverrideMode"]; has {
		boot["BootSourceOverrideMode"] = schemas.UEFIBootSourceOverrideMode
	}
	payload := map[string]any{"Boot": boot}
	err := s.Patch(s.ODataID, payload)
	if statusOf(err) == http.StatusPreconditionFailed {
		latest, readErr := c.serverSystem()
		if readErr != nil {
			return readErr
		}
		latest.SetETag(strings.TrimPrefix(latest.GetETag(), "W/"))
		s = latest
		err = s.Patch(s.ODataID, payload)
	}
	if _, sent := boot["BootSourceOverrideMode"]; sent && statusOf(err) == http.StatusBadRequest {
		delete(boot, "BootSourceOverrideMode")
		err = s.Patch(s.ODataID, payload)
	}
	return err
}

// checkBootOverride compares the override that the BMC reports after the change with the target.
func (c *conn) checkBootOverride(s *system, target schemas.BootSource) error {
	reported := s.Boot.BootSourceOverrideTarget
	switch {
	case hasOverride(s, target):
		return nil
	case isNull(s.links.Boot["BootSourceOverrideTarget"]):
		return hardware.Errorf(hardware.Unsupported, opBoot, c.bmc.endpoint.Address,
			"the BMC accepted %s and reports no override (BootSourceOverrideTarget is null): restart the BMC, update its firmware, "+
				"or look whether its BIOS configuration allows a boot override", target)
	default:
		// When the firmware reports the change late, the next call succeeds.
		return hardware.Errorf(hardware.Conflict, opBoot, c.bmc.endpoint.Address,
			"expected the override %s Once, the BMC reports %q %q", target, reported, s.Boot.BootSourceOverrideEnabled)
	}
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null" || string(raw) == `""`
}
