package rack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
	"github.com/ingot-dev/ingot/test/rack/ipxe"
)

// boot runs the firmware once: the self-test, the choice of the boot source, and what is booted until it ends.
func (s *Server) boot(ctx context.Context) outcome {
	s.mu.Lock()
	s.state.Boots++
	networkFirst := s.spec.NetworkFirst || s.faults.BootLoop
	s.mu.Unlock()
	if s.step(ctx, StepPOST) != nil || s.rack.wait(ctx, s.rack.options.Timing.POST) != nil {
		return outcomePowerOff
	}
	source := s.bmc.TakeBoot()
	s.log.Info("booting", "override", string(source))
	if image := s.imageOf(source); image != "" {
		if next := s.bootFromImage(ctx, image); next != outcomeNextDevice {
			return next
		}
	}
	if source == hardware.BootNetwork || source == "" && networkFirst {
		if next := s.bootFromNetwork(ctx); next != outcomeNextDevice {
			return next
		}
	}
	return s.bootFromDisk(ctx)
}

// bootFromNetwork boots by PXE or HTTP with iPXE.
func (s *Server) bootFromNetwork(ctx context.Context) outcome {
	s.mu.Lock()
	dead := s.faults.DeadBootNIC
	s.mu.Unlock()
	if dead {
		s.setActivity("waiting for a link on %s", s.inventory.NICs[0].Name)
		// What follows notices when the power is lost.
		_ = s.rack.wait(ctx, s.rack.options.Timing.NetworkTimeout)
		return outcomeNextDevice
	}
	loader := &ipxe.Loader{HTTP: &http.Client{Transport: s.rack.transport}, Wait: s.rack.wait, OnLoad: func(ctx context.Context, loaded ipxe.Loaded) error {
		return s.step(ctx, map[ipxe.Loaded]Step{ipxe.Script: StepBootDocument, ipxe.Kernel: StepKernel, ipxe.Initrd: StepInitrd}[loaded])
	}}
	plan, err := loader.Run(ctx, s.bootDocumentURL())
	if ctx.Err() != nil {
		return outcomePowerOff
	}
	if err != nil {
		s.log.Warn("network boot failed", "error", err)
		s.setActivity("network boot failed: %v", err)
		return outcomeNextDevice
	}
	switch plan.End {
	case ipxe.PowerOff:
		return outcomePowerOff
	case ipxe.Reboot:
		return outcomeReboot
	case ipxe.Boot:
		if plan.Panic != nil {
			return s.hang(ctx, "kernel panic", plan.Panic)
		}
		return s.runAgent(ctx, plan.Arguments)
	default:
		return outcomeNextDevice
	}
}

// imageOf returns the URL of the image that the server's own boot loads: a CD that its BMC presents, or a program at a URL that it pins; "": none.
func (s *Server) imageOf(source hardware.BootSource) string {
	switch source {
	case hardware.BootMedia:
		return s.bmc.BootedMedia()
	case hardware.BootPinned:
		return s.bmc.BootedURI()
	}
	return ""
}

// bootFromImage boots the agent whose command line the image has. Kernel and initrd in it are not run: the agent is that of this process.
func (s *Server) bootFromImage(ctx context.Context, url string) outcome {
	line, err := s.readCommandLine(ctx, url)
	if ctx.Err() != nil {
		return outcomePowerOff
	}
	if err != nil {
		s.log.Warn("the image does not boot", "error", err)
		s.setActivity("the image does not boot: %v", err)
		return outcomeNextDevice
	}
	if s.step(ctx, StepInitrd) != nil {
		return outcomePowerOff
	}
	return s.runAgent(ctx, strings.Fields(line))
}

// commandLinePattern finds the command line of the agent's kernel in an image.
var commandLinePattern = regexp.MustCompile(cmdline.ArgURL + `=[ -~]+`)

func (s *Server) readCommandLine(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := s.rack.transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	image, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	line := commandLinePattern.Find(image)
	if response.StatusCode != http.StatusOK || line == nil {
		return "", fmt.Errorf("status %s, and no %s in %d bytes", response.Status, cmdline.ArgURL, len(image))
	}
	return string(line), nil
}

// bootDocumentURL returns the URL that DHCP gives to the server.
func (s *Server) bootDocumentURL() string {
	s.rack.mu.Lock()
	defer s.rack.mu.Unlock()
	if strings.Contains(s.rack.bootURL, "${") {
		return strings.NewReplacer("${net0/mac}", s.BootMAC(), "${mac}", s.BootMAC()).Replace(s.rack.bootURL)
	}
	return strings.TrimSuffix(s.rack.bootURL, "/") + "/boot/" + s.BootMAC()
}

// errPanic is the cause with which the agent is cancelled when its kernel panics.
var errPanic = errors.New("kernel panic")

// runAgent runs the ramdisk: the real agent with this server's disk and hardware.
func (s *Server) runAgent(ctx context.Context, arguments []string) outcome {
	if s.rack.wait(ctx, s.rack.options.Timing.AgentStart) != nil || s.step(ctx, StepAgent) != nil {
		return outcomePowerOff
	}
	select {
	case s.rack.agents <- struct{}{}:
		defer func() { <-s.rack.agents }()
	case <-ctx.Done():
		return outcomePowerOff
	}
	// A ramdisk ends with its kernel, the server's power may outlive it.
	ctx, panics := context.WithCancelCause(ctx)
	defer panics(nil)
	line, err := cmdline.Parse(strings.Join(arguments, " "))
	if err != nil {
		return s.hang(ctx, "the command line", err)
	}
	next, err := agent.Run(ctx, agent.Config{
		URL: line.URL, Token: line.Token, Pins: line.Pins,
		HTTP: &http.Client{Transport: &agentTransport{server: s, next: s.rack.transport, panics: panics, marked: map[Step]bool{}}},
		Disks: func(context.Context) ([]agent.Disk, []hardware.UnusableDisk, error) {
			disks, err := s.openDisks(ctx)
			return disks, nil, err
		},
		Inventory: func(context.Context) (hardware.Inventory, error) {
			found := s.presentHardware()
			found.DeviceSource = hardware.DevicesByAgent
			return found, nil
		},
		Clock: agentClock{s.rack.options.Clock}, Log: s.log.With("program", "agent"),
	})
	switch {
	case errors.Is(context.Cause(ctx), errPanic):
		s.log.Warn("the agent's kernel panicked")
		return outcomeReboot
	case err != nil:
		s.log.Warn("the agent ended", "outcome", string(next), "error", err)
	default:
		s.log.Info("the agent ended", "outcome", string(next))
	}
	if next == agent.Reboot {
		return outcomeReboot
	}
	return outcomePowerOff
}

// hang keeps a server that cannot continue powered on and shows a message until the power is lost.
func (s *Server) hang(ctx context.Context, what string, why error) outcome {
	s.log.Warn(what, "why", why)
	s.setActivity("%s: %v", what, why)
	<-ctx.Done()
	return outcomePowerOff
}
