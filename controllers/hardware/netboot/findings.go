package netboot

import (
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Findings are what the boot service noticed in an attempt that a person should know. They decide nothing.
type Findings struct {
	// AnotherAgent means that a program with another key used the token of the current boot.
	AnotherAgent Finding
	// BootRequestedAgain means that a boot document was requested while the agent was at work.
	BootRequestedAgain Finding
	// ServerDiffers means that the agent's server differs from the known hardware of the host.
	ServerDiffers Finding
	// BootLoadFailed means that a server has said that it could not load or start the agent's kernel or initrd.
	BootLoadFailed Finding
	// KernelNotRequested means that a server has its boot document, and has asked for no kernel since.
	KernelNotRequested Finding
	// NoAgentRegistered means that a server has fetched the agent's kernel, and no agent has registered since.
	NoAgentRegistered Finding
	// BootWayRefused means that the BMC cannot boot the server in the way that is preferred, so that the next way is used.
	BootWayRefused Finding
	// InventoryDiffers means that the agent has found other GPUs, less memory or fewer disks than the BMC reports.
	InventoryDiffers Finding
	// BootWaySilent means that no agent has come up in the boots by a way, so that the next way is used.
	BootWaySilent Finding
	// BootNotEncrypted means that firmware loads the agent by HTTP from the URL that is pinned, because it cannot be told to trust the boot service.
	BootNotEncrypted Finding
}

// Finding is one kind of finding; the zero value means that there was none.
type Finding struct {
	// Count is how often it was noticed. What follows within findingInterval is not counted, so that a stranger cannot cause many writes.
	Count int
	// At is when it was last counted.
	At time.Time
	// Message says what was expected and what was seen, when it was last counted.
	Message string
}

// findingInterval is the minimum time between two countings of the same kind of finding.
func (s *Service) findingInterval() time.Duration { return maxIntervals * s.options.ProgressInterval }

// addFinding counts a finding, unless it was counted recently.
func (s *Service) addFinding(finding *Finding, now time.Time, format string, args ...any) {
	if finding.Count > 0 && !now.Before(finding.At) && now.Before(finding.At.Add(s.findingInterval())) {
		return
	}
	finding.Count, finding.At, finding.Message = finding.Count+1, now, sanitizeText(fmt.Sprintf(format, args...))
}

// addAnotherAgent notes a request with the token of the current boot and the key of another agent, and fails the attempt: either may be the server's, so nothing
// of what both say counts. What has been installed stays so.
func (s *Service) addAnotherAgent(session *Session, address string, now time.Time) {
	s.addFinding(&session.Findings.AnotherAgent, now, "two agents spoke for this server: the one at %s has registered for boot %d, and another program at %s used the token of that boot with another key: "+
		"look for a server or a person that should not be on the provisioning network; a boot by VirtualMedia or PinnedHTTP gives the token to nobody who knows the MAC address alone",
		session.Agent.Address, session.Boots, address)
	if session.Operation == hardware.OpInstall && session.Step == hardware.StepFinishing {
		return
	}
	failAttempt(session, hardware.ReasonAnotherAgent, session.Findings.AnotherAgent.Message)
}

// reportAnotherAgent stores that a request was refused because another agent has registered.
func (s *Service) reportAnotherAgent(r agentRequest) error {
	if r.session.Agent.KeyDigest == "" {
		return nil
	}
	s.options.Count(EventAnotherAgent)
	_, err := s.options.Store.Update(r.Context(), r.claims.hostUID, func(session *Session) error {
		if checkCurrent(*session, r.claims, r.now) == nil && session.Agent.KeyDigest != "" && session.Agent.KeyDigest != r.keyDigest {
			s.addAnotherAgent(session, addressOf(r.Request), r.now)
		}
		return nil
	})
	return err
}
