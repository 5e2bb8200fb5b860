package direct_test

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/direct"
)

func TestAnInstallWithAHintThatTheAgentDoesNotFollowIsRefused(t *testing.T) {
	asked := conformanceImage
	asked.RootDevice = hardware.RootDevice{SerialNumber: "S1", HCTL: "1:0:0:0", Rotational: "false"}
	err := direct.New(direct.Options{}).Install(t.Context(), hardware.Host{UID: "a"}, hardware.Attempt{Number: 1}, asked)
	if hardware.KindOf(err) != hardware.Unsupported || !strings.Contains(err.Error(), "[hctl rotational]") {
		t.Errorf("expected Unsupported, seen %v", err)
	}
}
