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

// bootTargets are the Redfish targets for a source, the first that a BMC offers is taken.
var bootTargets = map[hardware.BootSource][]schemas.BootSource{
	hardware.BootNetwork: {schemas.PxeBootSource},
	hardware.BootDisk:    {schemas.HddBootSource},
	hardware.BootMedia:   {schemas.CdBootSource, schemas.UsbBootSource},
}

// SetBootOnce implements hardware.BMC. It reads the override back: firmware that accepts one and then reports none, or
// another, is Unsupported or Conflict, since the server would silently boot something else.
func (b *bmc) SetBootOnce(ctx context.Context, source hardware.BootSource) error {
	return b.do(ctx, opBoot, func(c *conn) error {
		s, err := c.system()
		if err != nil {
			return err
		}
		target, err := c.bootTarget(s, source)
		if err != nil {
			return err
		}
		if overridden(s, target) {
			return nil
		}
		if err := c.patchBoot(s, target); err != nil {
			return err
		}
		after, err := c.system()
		if err != nil {
			return err
		}
		return c.judgeBoot(after, target)
	})
}

func overridden(s *system, target schemas.BootSource) bool {
	return s.Boot.BootSourceOverrideTarget == target && s.Boot.BootSourceOverrideEnabled == schemas.OnceBootSourceOverrideEnabled
}

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

// patchBoot sends the override. The mode goes along only where the BMC has one (Supermicro's older firmware has none and
// refuses it) and is dropped when it is refused. A stale ETag is read again once; "W/" is taken off then, for BMCs that
// hand out weak ETags and compare strongly.
func (c *conn) patchBoot(s *system, target schemas.BootSource) error {
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
		again, readErr := c.system()
		if readErr != nil {
			return readErr
		}
		again.SetETag(strings.TrimPrefix(again.GetETag(), "W/"))
		s = again
		err = s.Patch(s.ODataID, payload)
	}
	if _, sent := boot["BootSourceOverrideMode"]; sent && statusOf(err) == http.StatusBadRequest {
		delete(boot, "BootSourceOverrideMode")
		err = s.Patch(s.ODataID, payload)
	}
	return err
}

// judgeBoot compares what the BMC reports after the change with what was asked.
func (c *conn) judgeBoot(s *system, target schemas.BootSource) error {
	seen := s.Boot.BootSourceOverrideTarget
	switch {
	case overridden(s, target):
		return nil
	case isNull(s.links.Boot["BootSourceOverrideTarget"]):
		return hardware.Errorf(hardware.Unsupported, opBoot, c.bmc.endpoint.Address,
			"the BMC accepted %s and reports no override (BootSourceOverrideTarget is null): restart the BMC, update its firmware, "+
				"or look whether its BIOS configuration allows a boot override", target)
	default:
		// Firmware that takes a while to show the change is no Conflict at the next call.
		return hardware.Errorf(hardware.Conflict, opBoot, c.bmc.endpoint.Address,
			"expected the override %s Once, the BMC reports %q %q", target, seen, s.Boot.BootSourceOverrideEnabled)
	}
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null" || string(raw) == `""`
}
