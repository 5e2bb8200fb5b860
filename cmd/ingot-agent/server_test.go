package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/network"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/pin"
)

func TestThePageAboutAFailureSaysWhoAndWhyAndHasNoToken(t *testing.T) {
	s := newServer(fstest.MapFS{"proc/cmdline": {Data: []byte("ingot.url=http://10.20.0.2:8090 ingot.token=very-secret ingot.host=metal/gpu-1 ingot.attempt=7 ingot.vlan=x\n")}})
	var consoles, log bytes.Buffer
	s.screen.Log, s.screen.WriteConsoles, s.screen.QuietKernel = &log, func(text string) { consoles.WriteString(text) }, func(bool) {}
	s.log.Info("the kernel says ingot.token=very-secret")
	for _, c := range []struct {
		err  error
		want []string
	}{
		{fmt.Errorf("x: %w", &agent.Failure{Reason: hardware.ReasonDigestMismatch, Message: "expected sha256:1, seen sha256:2", Err: errors.New("very-secret")}),
			[]string{"DigestMismatch", "expected sha256:1, seen sha256:2", "kubectl ingot why --log metal/gpu-1"}},
		{fmt.Errorf("registering: %w", protocol.Refusalf(protocol.WrongServer, "it lacks the NIC")), []string{"WrongServer", "does not serve this server"}},
		{fmt.Errorf("registering: giving up: %w", &pin.RefusedError{Seen: "one of the authority sha256:22", Expected: []string{"sha256:11"}}),
			[]string{"CertificateRefused", "does not trust what answers", "sha256:11, seen: one of the authority sha256:22"}},
		{errors.New("dial tcp: no route to host"), []string{"AgentFailed", "netboot.address"}},
	} {
		consoles.Reset()
		s.screen.Show(s.failurePage(c.err))
		for _, want := range append(c.want, "metal/gpu-1, attempt 7", "http://10.20.0.2:8090") {
			if !strings.Contains(consoles.String(), want) {
				t.Errorf("%v: the page lacks %q:\n%s", c.err, want, consoles.String())
			}
		}
		if strings.Contains(consoles.String(), "very-secret") {
			t.Errorf("the page has the token:\n%s", consoles.String())
		}
	}
	consoles.Reset()
	s.screen.Show(s.networkPage(&network.Failure{Reason: network.LinkMissing, Message: "no link", Look: "the cable"}, "It goes on."))
	for _, want := range []string{"BootNICNoLink", "no link", "the cable", "It goes on."} {
		if !strings.Contains(consoles.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, consoles.String())
		}
	}
	if text := s.logs.Chunk(0).Text; strings.Contains(text, "very-secret") || !strings.Contains(text, "ingot.vlan") {
		t.Errorf("the log for the boot service: %s", text)
	}
}
