package main

import (
	"log/slog"
	"testing"
	"testing/fstest"

	"github.com/ingot-dev/ingot/controllers/hardware/agent"
)

func TestTheLastOfARepeatedKernelArgumentCounts(t *testing.T) {
	line := "initrd=initrd ingot.url=http://a:1 quiet ingot.token=A.B= ingot.url=http://b:2 ingot.urls=x\n"
	for name, want := range map[string]string{"ingot.url": "http://b:2", "ingot.token": "A.B=", "quiet": "", "ingot": ""} {
		if got := kernelArgument(line, name); got != want {
			t.Errorf("%s: %q, expected %q", name, got, want)
		}
	}
}

func TestAMachineThatWasNotBootedByUsTouchesNothingAndPowersOff(t *testing.T) {
	root := fstest.MapFS{"proc/cmdline": {Data: []byte("quiet\n")}}
	exitAction, err := run(t.Context(), slog.New(slog.DiscardHandler), root)
	if err == nil || exitAction != agent.PowerOff {
		t.Errorf("%s, %v", exitAction, err)
	}
}
