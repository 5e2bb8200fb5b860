package diskrules

import (
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Found is what an agent has found of the disks of its server.
type Found struct {
	// Disks can be written.
	Disks []hardware.Disk
	// Unusable are disks that cannot be written, and controllers that hide their disks.
	Unusable []hardware.UnusableDisk
}

// Refusal says why nothing is done to the disks. It implements error.
type Refusal struct {
	Reason hardware.Reason
	// Message may have serial numbers of the host's disks: it is for people who may read the host, and not for the agent.
	Message string
}

// Error returns reason and message.
func (r *Refusal) Error() string { return string(r.Reason) + ": " + r.Message }

func refusef(reason hardware.Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func diskTexts(disks []hardware.Disk) string {
	var texts []string
	for _, disk := range disks {
		texts = append(texts, disk.String())
	}
	return strings.Join(texts, "; ")
}
