package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/console"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/logbuffer"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/network"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
	"github.com/ingot-dev/ingot/controllers/hardware/pin"
)

// pageTime is how long the page about a failure stays before the server powers off, if nobody takes the power away before. Ingot does so as soon as it
// tries again.
const pageTime = 10 * time.Minute

var powersOff = fmt.Sprintf("The server powers off in %.0f minutes.", pageTime.Minutes())

// server is the machine that the agent is process 1 of.
type server struct {
	root   fs.FS
	line   cmdline.Arguments
	log    *slog.Logger
	logs   *logbuffer.Buffer
	screen *console.Screen
}

// newServer reads the command line and begins the log, from which the token is left out.
func newServer(root fs.FS) *server {
	s := &server{root: root, logs: &logbuffer.Buffer{}}
	s.screen = &console.Screen{Log: os.Stderr, WriteConsoles: func(text string) { writeConsoles(console.Consoles(root), text) }, QuietKernel: quietKernel}
	s.log = slog.New(slog.NewTextHandler(io.MultiWriter(s.logs, s.screen), nil))
	s.line = readCommandLine(s.log, root)
	s.logs.AddSecret(s.line.Token)
	s.screen.AddSecret(s.line.Token)
	return s
}

// work brings up the network and runs the agent. When that fails, the consoles show why until the server is powered off.
func (s *server) work(ctx context.Context) agent.ExitAction {
	go s.followKernel()
	err := prepareMachine(ctx, s.log, s.root, s.line, func(f *network.Failure) {
		s.screen.Show(s.networkPage(f, "The agent goes on by itself when that is there."))
	})
	var failure *network.Failure
	if errors.As(err, &failure) {
		s.log.Error("the server has no network", "error", failure)
		s.showUntilPowerOff(ctx, s.networkPage(failure, powersOff))
		return agent.PowerOff
	}
	s.screen.Hide()
	exitAction, err := run(ctx, s.log, s.root, s.line, s.logs.Chunk)
	if err != nil {
		s.log.Error("the agent ends with an error", "error", err)
		s.showUntilPowerOff(ctx, s.failurePage(err))
		return agent.PowerOff
	}
	s.log.Info("the agent is done", "next", exitAction)
	s.screen.Show(s.donePage(exitAction))
	return exitAction
}

// followKernel adds the kernel's warnings and errors to the log.
func (s *server) followKernel() {
	messages, err := os.Open("/dev/kmsg")
	if err == nil {
		err = s.logs.FollowKernel(messages)
	}
	if err != nil {
		s.log.Warn("the kernel's messages are not in the log", "error", err)
	}
}

// showUntilPowerOff shows the page for pageTime.
func (s *server) showUntilPowerOff(ctx context.Context, page console.Page) {
	s.screen.Show(page)
	// It returns early when the server is shut down.
	_ = agent.SystemClock{}.Sleep(ctx, pageTime)
}

// newPage returns a page with what is known of the server.
func (s *server) newPage(title string) console.Page {
	page := console.Page{Title: title, Host: s.line.Host, Attempt: s.line.Attempt, BootService: s.line.URL, Log: s.logs.Tail(20)}
	for _, nic := range network.ListNICs() {
		page.NICs = append(page.NICs, nic.String())
	}
	return page
}

// networkPage is the page about a network that is not up.
func (s *server) networkPage(failure *network.Failure, next string) console.Page {
	page := s.newPage("this server has no way to the boot service")
	page.Reason, page.Seen, page.Look, page.Next, page.Log = string(failure.Reason), failure.Message, failure.Look, next, nil
	return page
}

// failurePage is the page about an operation that failed, or an agent that the boot service does not serve.
func (s *server) failurePage(err error) console.Page {
	page := s.newPage("this server was not installed or erased")
	var failure *agent.Failure
	var refused *pin.RefusedError
	switch {
	case errors.As(err, &refused):
		page.Title, page.Reason, page.Seen = "this server does not trust what answers at the boot service's address", "CertificateRefused", refused.Error()
		page.Look = "whether something else answers at that address, a proxy for one, and whether the Secret of the boot service's authority was deleted since the server was powered on"
	case errors.As(err, &failure):
		page.Reason, page.Seen = string(failure.Reason), failure.Message
		if failure.Err != nil {
			page.Seen += ": " + failure.Err.Error()
		}
		page.Look = "at the agent's log: kubectl ingot why --log " + s.line.Host
	case protocol.CodeOf(err) != "":
		page.Title, page.Reason, page.Seen = "the boot service does not serve this server", string(protocol.CodeOf(err)), err.Error()
		page.Look = "at the log of the boot service, and the host's attempts: kubectl ingot why"
	default:
		page.Reason, page.Seen = "AgentFailed", err.Error()
		page.Look = "whether the boot service runs and its address is right: the NodeProvider's spec.redfish.netboot.address"
	}
	page.Next = powersOff + " Its disk does not boot what was not written completely."
	return page
}

// donePage is the page of a success.
func (s *server) donePage(next agent.ExitAction) console.Page {
	page := s.newPage("all is done")
	page.Log = nil
	if page.Next = "The server powers off."; next == agent.Reboot {
		page.Next = "The server reboots into the system that was installed."
	}
	return page
}
