package redfish

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const opSecureBoot = "read Secure Boot"

// secureBoot is the resource SecureBoot of a ComputerSystem (DSP0268).
type secureBoot struct {
	// SecureBootEnable is the setting, which takes effect with the next boot; SecureBootCurrentBoot is what the present boot has.
	SecureBootEnable      *bool
	SecureBootCurrentBoot string
	// SecureBootMode says whether the firmware enforces anything. In SetupMode there is no platform key, and in AuditMode images are only logged (UEFI
	// specification 2.10, section 32.3).
	SecureBootMode string
}

// state returns whether the next boot enforces Secure Boot.
func (s *secureBoot) state() hardware.SecureBootState {
	switch {
	case s == nil:
		return hardware.SecureBootUnknown
	case s.SecureBootMode == "SetupMode", s.SecureBootMode == "AuditMode":
		return hardware.SecureBootOff
	case s.SecureBootEnable != nil && *s.SecureBootEnable:
		return hardware.SecureBootOn
	case s.SecureBootEnable != nil:
		return hardware.SecureBootOff
	case s.SecureBootCurrentBoot == "Enabled":
		return hardware.SecureBootOn
	case s.SecureBootCurrentBoot == "Disabled":
		return hardware.SecureBootOff
	}
	return hardware.SecureBootUnknown
}

// readSecureBoot sets SecureBoot of the inventory. A BMC that cannot read it leaves it unknown, and is not left without an inventory for it: it is asked again
// before each boot.
func (w *crawl) readSecureBoot(s *system) error {
	found, err := readResource[secureBoot](w, s.links.SecureBoot.String())
	if err != nil {
		w.bmc.client.options.Log.Debug("Secure Boot is unknown", "bmc", w.bmc.endpoint.Address, "error", err)
		return nil
	}
	w.inventory.SecureBoot = found.state()
	return nil
}

// SecureBoot implements hardware.BMC.
func (b *bmc) SecureBoot(ctx context.Context) (state hardware.SecureBootState, setting string, err error) {
	err = b.call(ctx, opSecureBoot, func(c *conn) error {
		s, err := c.serverSystem()
		if err != nil {
			return err
		}
		uri := s.links.SecureBoot.String()
		if !strings.HasPrefix(uri, "/") {
			return nil
		}
		setting = "SecureBootEnable of " + uri
		raw, _, err := readRaw(c.api, uri)
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		var found secureBoot
		if err := json.Unmarshal(raw, &found); err != nil {
			return fmt.Errorf("%w: %s: %w", errMalformed, uri, err)
		}
		state = found.state()
		return nil
	})
	return state, setting, err
}
