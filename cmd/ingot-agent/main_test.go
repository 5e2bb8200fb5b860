package main

import (
	"log/slog"
	"testing"
	"testing/fstest"

	"github.com/ingot-dev/ingot/controllers/hardware/agent"
)

func TestAMachineThatWasNotBootedByUsTouchesNothingAndPowersOff(t *testing.T) {
	root := fstest.MapFS{"proc/cmdline": {Data: []byte("quiet\n")}}
	log := slog.New(slog.DiscardHandler)
	exitAction, err := run(t.Context(), log, root, readCommandLine(log, root), nil)
	if err == nil || exitAction != agent.PowerOff {
		t.Errorf("%s, %v", exitAction, err)
	}
}
