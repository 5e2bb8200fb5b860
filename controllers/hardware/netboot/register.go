package netboot

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// agentKeyDigest returns the digest of the key in the request.
func agentKeyDigest(r *http.Request) (string, error) {
	key, err := hex.DecodeString(r.Header.Get(protocol.HeaderKey))
	if err != nil || len(key) != protocol.KeyBytes {
		return "", protocol.Refusalf(protocol.KeyInvalid, "expected %d hexadecimal digits in the header %s", 2*protocol.KeyBytes, protocol.HeaderKey)
	}
	digest := sha256.Sum256(key)
	return hex.EncodeToString(digest[:]), nil
}

// checkAgent refuses a request that is not from the agent that has registered in the current boot.
//
// Example: a neighbour on the provisioning network reads the boot document of a server, which anybody can request who knows its MAC address,
// while the server writes its image. If the token were enough, the neighbour could fetch the config drive with the credentials of the node.
func checkAgent(session Session, keyDigest string) error {
	switch {
	case session.Agent.KeyDigest == "":
		return protocol.Refusalf(protocol.NotRegistered, "no agent has registered in attempt %d boot %d", session.Number, session.Boots)
	case subtle.ConstantTimeCompare([]byte(session.Agent.KeyDigest), []byte(keyDigest)) != 1:
		return protocol.Refusalf(protocol.AnotherAgent, "another agent has registered in attempt %d boot %d", session.Number, session.Boots)
	}
	return nil
}

// serveRegister registers the agent as the only one of the current boot and returns its instructions. The registration is stored before it
// is answered. Without it: the process ends after its answer, the next one knows of no agent, and a neighbour registers with the token
// while the first agent writes the disk.
func (s *Service) serveRegister(r agentRequest) (any, error) {
	var registration protocol.Registration
	if err := decodeBody(r, &registration); err != nil {
		return nil, err
	}
	if err := input.Clean(&registration.Inventory, hardware.MaxText, hardware.MaxParts); err != nil {
		return nil, protocol.Refusalf(protocol.BadRequest, "%v", err)
	}
	reported, err := s.readTPM(r, registration.TPM)
	if err != nil {
		return nil, err
	}
	settings, err := s.hostSettings(r.Context(), r.session)
	if err != nil {
		return nil, err
	}
	var refusal *protocol.Refusal
	session, err := s.options.Store.Update(r.Context(), r.claims.hostUID, func(session *Session) error {
		if err := checkCurrent(*session, r.claims, r.now); err != nil {
			return err
		}
		if err := checkNotFinished(session); err != nil {
			return err
		}
		refusal = s.register(session, registered{registration.Inventory, reported}, r, settings)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case refusal != nil:
		if refusal.Code == protocol.AnotherAgent {
			s.options.Count(EventAnotherAgent)
		} else {
			s.options.Count(EventWrongServer)
		}
		s.log(session).Warn("registration refused", "boot", session.Boots, "code", refusal.Code, "from", addressOf(r.Request), "agent", session.Agent.Address)
		return nil, refusal
	}
	s.keepReport(session.HostUID, agentReport{
		attempt: session.Number, boots: session.Boots, receivedAt: r.now, storedAt: session.StepAt, progress: protocol.Progress{Step: session.Step},
	})
	s.log(session).Info("agent registered", "boot", session.Boots, "operation", session.Operation, "from", addressOf(r.Request))
	return s.instructions(session, settings, r.now), nil
}

// registered is what an agent has reported of its server.
type registered struct {
	inventory hardware.Inventory
	tpm       hardware.TPM
}

// register makes the agent the only one of the session's boot, or returns why it is refused. A refusal changes the session too: it says what
// was noticed, and a server that is not the host's ends the attempt.
func (s *Service) register(session *Session, reported registered, r agentRequest, settings HostSettings) *protocol.Refusal {
	address, found := addressOf(r.Request), reported.inventory
	if session.Agent.KeyDigest != "" {
		if err := checkAgent(*session, r.keyDigest); err != nil {
			s.addAnotherAgent(session, address, r.now)
			return protocol.Refusalf(protocol.AnotherAgent, "another agent has registered in attempt %d boot %d", session.Number, session.Boots)
		}
		return nil // the answer to the first registration was lost
	}
	if message := bootMACProblem(session.BootMAC, found); message != "" {
		failAttempt(session, hardware.ReasonWrongServer, message+"; the agent registered from "+address)
		return protocol.Refusalf(protocol.WrongServer, "%s", message)
	}
	channel := session.Channel
	if r.TLS == nil {
		channel = channel.ByHTTP()
	}
	judged, refusal := judgeTPM(session, reported.tpm, channel, address)
	if refusal != nil {
		return refusal
	}
	if message := identityDifference(session.Inventory, found); message != "" {
		if settings.StrictIdentity {
			failAttempt(session, hardware.ReasonServerDiffers, message+"; the agent registered from "+address+
				"; the NodeProvider has strictIdentity: correct the host's BMC address or boot MAC address, or inspect the host again when its hardware was changed")
			return protocol.Refusalf(protocol.ServerDiffers, "this server differs from the known hardware of its host, and the NodeProvider has strictIdentity; nothing was changed: "+
				"what was expected is in the host's status")
		}
		s.addFinding(&session.Findings.ServerDiffers, r.now, "%s; the agent registered from %s: look whether BMC address and boot MAC address are those of one server", message, address)
	}
	s.compareWithBMC(session, found, r.now)
	found = mergeRegistered(session.Inventory, found)
	if refusal := refuseHardware(session, found); refusal != nil {
		return refusal
	}
	session.Channel, session.TPM = channel, judged
	session.Agent = Agent{KeyDigest: r.keyDigest, Address: address, RegisteredAt: r.now, HeardAt: r.now}
	s.enterStep(session, hardware.StepRegistered, r.now)
	if session.SilentBoots.Way == session.Way() {
		session.SilentBoots = SilentBoots{} // they were not in a row
	}
	session.Inventory = &found
	return nil
}

// compareWithBMC notes how what the agent found differs from what the BMC reported. Where an agent has looked before, what the BMC reported is not known
// any more, and the finding stays until a part came back. Without it: the next boot, which compares nothing, ends the finding while the part is still missing.
func (s *Service) compareWithBMC(session *Session, found hardware.Inventory, now time.Time) {
	finding := &session.Findings.InventoryDiffers
	message := hardware.BMCDifference(session.Inventory, found)
	switch known := session.Inventory; {
	case message != "":
		s.addFinding(finding, now, "%s: what the agent found is kept; look whether a part has failed or sits loose, or update the BMC's firmware, and inspect the host again (annotation inspect.metal3.io)", message)
	case known == nil || known.SystemUUID == "" || hardware.HasMoreParts(*known, found):
		*finding = Finding{}
	}
}

// failAttempt fails the attempt.
func failAttempt(session *Session, reason hardware.Reason, message string) {
	session.State, session.Reason, session.Message = hardware.AttemptFailed, reason, sanitizeText(message)
}

// instructions returns what the agent of the session has to do.
func (s *Service) instructions(session Session, settings HostSettings, now time.Time) protocol.Instructions {
	instructions := protocol.Instructions{
		Attempt: session.Number, Operation: session.Operation, Erase: session.Erase,
		ProgressMillis:  s.options.ProgressInterval.Milliseconds(),
		RemainingMillis: session.Deadline.Sub(now).Milliseconds(),
	}
	if session.Operation == hardware.OpInstall {
		image := protocol.Image(session.Image)
		instructions.Image, instructions.CABundle = &image, settings.CABundle
	}
	return instructions
}

// silence is how long the agent must not have been heard for a further boot document to be served: twice the longest time between two stored
// signs of life, so that every replica knows an agent that is alive.
func (s *Service) silence() time.Duration { return 2 * maxIntervals * s.options.ProgressInterval }

// isAgentAtWork reports whether an agent has registered in the current boot and was heard recently. A server that loses its power is not
// affected: the Installer sees that the power is off, and boots the server again, which ends the boot of the agent.
//
// Example: a neighbour requests the boot document of a server while its agent writes the disk. If the document were served, it would
// invalidate the token of the agent, which would stop in the middle of the image, and the neighbour could register in its place.
func (s *Service) isAgentAtWork(session Session, now time.Time) bool {
	if session.Agent.KeyDigest == "" || session.Step == hardware.StepFinishing {
		return false
	}
	heard := session.Agent.HeardAt
	if report, found := s.currentReport(session); found && report.receivedAt.After(heard) {
		heard = report.receivedAt
	}
	return now.Before(heard.Add(s.silence()))
}
