package netboot

import (
	"fmt"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// recordResult changes the session to what the result of the agent says. refusal is why the result is refused although the session changes.
func (s *Service) recordResult(session *Session, result protocol.Result, now time.Time) (refusal, err error) {
	finished := checkNotFinished(session)
	// Another replica may have received and stored a later step.
	if report, found := s.currentReport(*session); found && finished == nil && !report.receivedAt.Before(session.StepAt) {
		s.setProgress(session, report.progress, now)
	}
	if finished != nil {
		if result.Reason == "" {
			return nil, nil // the response to the first result was lost
		}
		return nil, finished
	}
	recordDisks(session, result)
	if refusal := checkEvidence(*session, result); refusal != nil {
		session.State, session.Reason, session.Message = hardware.AttemptFailed, hardware.ReasonEvidenceMissing, sanitizeText(refusal.Message)
		return refusal, nil
	}
	session.Message = sanitizeText(result.Message)
	if result.Reason == "" {
		s.enterStep(session, hardware.StepFinishing, now)
		return nil, nil
	}
	session.State, session.Reason = hardware.AttemptFailed, result.Reason
	if s.options.Logs != nil {
		session.Message = input.Line(session.Message, protocol.MaxMessage-maxLogHint) + "; the agent's log: ingot why --log " + session.Namespace + "/" + session.Name
	}
	return nil, nil
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

// checkEvidence refuses the success of an erase that is not proven for every disk that the host has or had.
//
// Example: a disk does not answer after the power-on. The agent erases the others and reports success. Without this check the host would
// count as clean, and the next tenant would read the former tenant's data when the disk answers again.
func checkEvidence(session Session, result protocol.Result) *protocol.Refusal {
	if session.Operation != hardware.OpErase || session.Erase == hardware.EraseNone || result.Reason != "" {
		return nil
	}
	if len(result.Evidence) == 0 {
		return protocol.Refusalf(protocol.EvidenceMissing, "the erase has no evidence: expected what was done to each disk")
	}
	var erased []hardware.Disk
	for _, disk := range result.Evidence {
		if problem := evidenceProblem(session.Erase, disk); problem != "" {
			return protocol.Refusalf(protocol.EvidenceMissing, "disk %s is not proven to be erased: %s", sanitizeText(disk.Disk.String()), problem)
		}
		erased = append(erased, disk.Disk)
	}
	var missing []string
	for _, disk := range hardware.AbsentDisks(disksToErase(session), erased) {
		missing = append(missing, sanitizeText(disk.String()))
	}
	if len(missing) > 0 {
		return protocol.Refusalf(protocol.EvidenceMissing, "the erase has no evidence for %s", strings.Join(missing, "; "))
	}
	return nil
}

// disksToErase returns the disks that the record of the host names, and those that the agent has found and the record does not name.
func disksToErase(session Session) []hardware.Disk {
	var disks []hardware.Disk
	if session.Disks != nil {
		disks = append(disks, session.Disks.Expected...)
	}
	if session.Inventory != nil {
		disks = append(disks, hardware.AbsentDisks(session.Inventory.Disks, disks)...)
	}
	return disks
}

// evidenceProblem returns why the evidence of one disk is no proof of the erase mode, "" when it is.
func evidenceProblem(mode hardware.EraseMode, disk hardware.DiskEvidence) string {
	switch {
	case disk.Result != hardware.DiskErased:
		return fmt.Sprintf("its result is %q", sanitizeText(string(disk.Result)))
	case mode == hardware.EraseMetadata && disk.Method == hardware.MethodMetadata:
		if disk.Bytes <= 0 {
			return "no byte was overwritten"
		}
	case !disk.Method.IsComplete():
		return fmt.Sprintf("the erase mode is %s, and its method is %q", mode, sanitizeText(string(disk.Method)))
	case disk.SizeBytes <= 0 || disk.Bytes < disk.SizeBytes:
		return fmt.Sprintf("%d of %d bytes were erased", disk.Bytes, disk.SizeBytes)
	}
	return ""
}
