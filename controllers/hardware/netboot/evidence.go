package netboot

import (
	"time"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// recordResult changes the session to what the result of the agent says. Whether the evidence of an erase is a proof is decided by who writes the proof.
func (s *Service) recordResult(session *Session, result protocol.Result, now time.Time) error {
	finished := checkNotFinished(session)
	// Another replica may have received and stored a later step.
	if report, found := s.currentReport(*session); found && finished == nil && !report.receivedAt.Before(session.StepAt) {
		s.setProgress(session, report.progress, now)
	}
	if finished != nil {
		if result.Reason == "" {
			return nil // the response to the first result was lost
		}
		return finished
	}
	recordDisks(session, result)
	session.Message = sanitizeText(result.Message)
	if result.Reason == "" {
		s.enterStep(session, hardware.StepFinishing, now)
		return nil
	}
	session.State, session.Reason = hardware.AttemptFailed, result.Reason
	if s.options.Logs != nil {
		session.Message = input.Line(session.Message, protocol.MaxMessage-maxLogHint) + "; the agent's log: ingot why --log " + session.Namespace + "/" + session.Name
	}
	return nil
}

// maxLogHint is what is left for the command that prints the log: the names of namespace and host have 63 and 253 characters at most.
const maxLogHint = 360

// validateEvidence refuses evidence that cannot be stored.
func validateEvidence(evidence []hardware.DiskEvidence) error {
	if len(evidence) > hardware.MaxDisks {
		return protocol.Refusalf(protocol.BadRequest, "evidence for %d disks: expected at most %d", len(evidence), hardware.MaxDisks)
	}
	for _, disk := range evidence {
		isMethodKnown := disk.Method == "" || disk.Method == hardware.MethodMetadata || disk.Method.IsComplete()
		if !isMethodKnown || disk.Bytes < 0 || disk.Result != hardware.DiskErased && disk.Result != hardware.DiskFailed {
			return protocol.Refusalf(protocol.BadRequest, "evidence with method %q, %d bytes and result %q makes no sense",
				sanitizeText(string(disk.Method)), disk.Bytes, sanitizeText(string(disk.Result)))
		}
	}
	return nil
}

// recordDisks keeps which disk was written, and what an erase has done to each disk.
func recordDisks(session *Session, result protocol.Result) {
	if result.RootDisk != nil && session.Operation == hardware.OpInstall {
		session.RootDisk = sanitizeDisk(*result.RootDisk)
	}
	if session.Operation != hardware.OpErase || len(result.Evidence) == 0 {
		return
	}
	evidence := &hardware.EraseEvidence{}
	for _, disk := range result.Evidence {
		disk.Disk, disk.Message = sanitizeDisk(disk.Disk), input.Line(disk.Message, maxDiskMessage)
		evidence.Disks = append(evidence.Disks, disk)
	}
	session.Evidence = evidence
}

const (
	// maxDiskText limits the texts by which a disk is known, maxDiskMessage what is said about one, in bytes.
	maxDiskText, maxDiskMessage = hardware.MaxText, 256
)

// sanitizeDisk limits the texts of a disk as an agent reports it.
func sanitizeDisk(disk hardware.Disk) hardware.Disk {
	_ = input.Clean(&disk, maxDiskText, 0) // a disk has no list
	disk.SizeBytes = max(disk.SizeBytes, 0)
	return disk
}
