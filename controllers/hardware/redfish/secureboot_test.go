package redfish_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

func TestSecureBootIsThatOfTheNextBoot(t *testing.T) {
	for _, c := range []struct {
		resource map[string]any
		want     hardware.SecureBootState
	}{
		{nil, hardware.SecureBootUnknown},
		{map[string]any{}, hardware.SecureBootUnknown},
		{map[string]any{"SecureBootEnable": true, "SecureBootCurrentBoot": "Enabled", "SecureBootMode": "UserMode"}, hardware.SecureBootOn},
		{map[string]any{"SecureBootEnable": false, "SecureBootCurrentBoot": "Enabled", "SecureBootMode": "UserMode"}, hardware.SecureBootOff},
		{map[string]any{"SecureBootEnable": true, "SecureBootCurrentBoot": "Disabled", "SecureBootMode": "DeployedMode"}, hardware.SecureBootOn},
		{map[string]any{"SecureBootEnable": true, "SecureBootCurrentBoot": "Disabled", "SecureBootMode": "SetupMode"}, hardware.SecureBootOff},
		{map[string]any{"SecureBootCurrentBoot": "Enabled"}, hardware.SecureBootOn},
		{map[string]any{"SecureBootCurrentBoot": "Disabled"}, hardware.SecureBootOff},
		{map[string]any{"SecureBootEnable": nil, "SecureBootCurrentBoot": nil}, hardware.SecureBootUnknown},
	} {
		f := start(t, bmc.Personality{SecureBoot: c.resource})
		got, setting, err := f.bmc.SecureBoot(t.Context())
		if err != nil || got != c.want || c.resource != nil && setting != "SecureBootEnable of "+bmc.PathSystem+"/SecureBoot" {
			t.Errorf("%v: %q, setting %q: %v, want %q", c.resource, got, setting, err, c.want)
		}
		inventory, err := f.bmc.Inventory(t.Context())
		if err != nil || inventory.SecureBoot != c.want {
			t.Errorf("%v: the inventory has %q: %v, want %q", c.resource, inventory.SecureBoot, err, c.want)
		}
	}
}

func TestABMCThatCannotReadSecureBootHasAnInventory(t *testing.T) {
	f := start(t, bmc.Personality{SecureBoot: map[string]any{"SecureBootEnable": true}})
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/SecureBoot") {
			http.Error(w, "{}", http.StatusInternalServerError)
			return true
		}
		return false
	})
	inventory, err := f.bmc.Inventory(t.Context())
	if err != nil || inventory.SecureBoot != hardware.SecureBootUnknown || inventory.Model == "" {
		t.Errorf("%+v: %v", inventory, err)
	}
}
