package direct

import (
	"context"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// bootOrderMemory keeps the boot order that a host's server had in its session, until it is put back.
//
// Without it: the process is killed while the agent works, and the next one does not know what the order was. The server boots from the network first for as
// long as it is there.
type bootOrderMemory struct {
	store   netboot.Store
	hostUID string
	kept    []string
}

var _ hardware.BootOrderMemory = (*bootOrderMemory)(nil)

// withBootOrder returns the endpoint of the host's BMC with the memory of its boot order.
func (i *Installer) withBootOrder(host hardware.Host, s netboot.Session) hardware.Endpoint {
	endpoint := host.BMC
	endpoint.BootOrder = &bootOrderMemory{store: i.options.Store, hostUID: host.UID, kept: s.BootOrder}
	return endpoint
}

// Kept implements hardware.BootOrderMemory.
func (m *bootOrderMemory) Kept() []string { return m.kept }

// Keep implements hardware.BootOrderMemory.
func (m *bootOrderMemory) Keep(ctx context.Context, order []string) error {
	_, err := m.store.Update(ctx, m.hostUID, func(s *netboot.Session) error {
		s.BootOrder = order
		return nil
	})
	if err == nil {
		m.kept = order
	}
	return err
}
