package netboot

import (
	"errors"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/diskrules"
)

// serveDisks decides what the agent does to the disks that it has found. A refusal fails the attempt before a disk is changed, and does not tell the agent which
// disks were expected.
func (s *Service) serveDisks(r agentRequest) (any, error) {
	var request protocol.Disks
	if err := decodeBody(r, &request); err != nil {
		return nil, err
	}
	if len(request.Disks) > hardware.MaxDisks || len(request.Unusable) > hardware.MaxDisks {
		return nil, protocol.Refusalf(protocol.BadRequest, "%d disks and %d that cannot be written: expected at most %d of each", len(request.Disks), len(request.Unusable), hardware.MaxDisks)
	}
	if err := checkNotFinished(&r.session); err != nil {
		return nil, err
	}
	decision, err := decideDisks(r.session, diskrules.Found{Disks: request.Disks, Unusable: request.Unusable})
	refusal := (*diskrules.Refusal)(nil)
	if !errors.As(err, &refusal) {
		return decision, err
	}
	session, err := s.update(r, func(session *Session) error {
		failAttempt(session, refusal.Reason, refusal.Message)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.log(session).Warn("disks refused", "boot", session.Boots, "reason", refusal.Reason, "message", refusal.Message)
	return nil, protocol.Refusalf(protocol.DisksRefused, "the disks of this server are not those that its host needs (%s); nothing was changed: what was expected is in the host's status", refusal.Reason)
}

// decideDisks returns the answer to what the agent has found, or a *diskrules.Refusal.
func decideDisks(session Session, found diskrules.Found) (protocol.DiskDecision, error) {
	switch session.Operation {
	case hardware.OpInstall:
		at, note, err := diskrules.SelectRoot(found, diskrules.Root{Hints: session.RootDevice, Previous: session.PreviousRootDisk, Accepted: session.AcceptedRootDisk})
		return protocol.DiskDecision{RootDisk: at, Note: note}, err
	case hardware.OpErase:
		return protocol.DiskDecision{RootDisk: -1}, diskrules.CheckErase(found, session.Disks)
	default:
		return protocol.DiskDecision{}, protocol.Refusalf(protocol.BadRequest, "nothing is done to the disks in an attempt of the kind %s", session.Operation)
	}
}
