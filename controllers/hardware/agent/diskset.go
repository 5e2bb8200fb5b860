package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// diskSet is what was found of the disks of the server.
type diskSet struct {
	disks []Disk
	// unusable are disks that cannot be written, and controllers that hide their disks.
	unusable []hardware.UnusableDisk
}

// submit asks the boot service what may be done with the disks, before one is changed. What the host's disks are is compared there, and an agent is not told
// it: another program on the network that passes for the agent would repeat it as evidence.
func (s diskSet) submit(ctx context.Context, client *client) (protocol.DiskDecision, error) {
	request := protocol.Disks{Unusable: s.unusable}
	for _, disk := range s.disks {
		request.Disks = append(request.Disks, disk.Info())
	}
	var decision protocol.DiskDecision
	if err := client.post(ctx, protocol.PathDisks, request, &decision); err != nil {
		return decision, fmt.Errorf("asking about the disks: %w", err)
	}
	return decision, nil
}

// selectRoot returns the disk that the image is written to, the others, and what the boot service says of the choice.
func (s diskSet) selectRoot(ctx context.Context, client *client) (root Disk, others []Disk, note string, err error) {
	decision, err := s.submit(ctx, client)
	if err != nil {
		return nil, nil, "", err
	}
	at := decision.RootDisk
	if at < 0 || at >= len(s.disks) {
		return nil, nil, "", fmt.Errorf("the boot service chose disk %d of %d", at, len(s.disks))
	}
	return s.disks[at], slices.Delete(slices.Clone(s.disks), at, at+1), decision.Note, nil
}
