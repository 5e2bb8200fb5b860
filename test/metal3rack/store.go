package metal3rack

import (
	"context"
	"sync"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/test/rack"
)

// store keeps the sessions of the boot service in memory, and the documents of config drives. It implements netboot.Store.
type store struct {
	mu       sync.Mutex
	sessions map[string]netboot.Session
	drives   map[string]hardware.ConfigDrive
}

// newStore returns a store with a session for each server. The uid of a host is that of its server here.
func newStore(namespace string, servers []*rack.Server) *store {
	s := &store{sessions: map[string]netboot.Session{}, drives: map[string]hardware.ConfigDrive{}}
	for _, server := range servers {
		s.sessions[server.UUID()] = netboot.Session{HostUID: server.UUID(), Namespace: namespace, Name: server.Name(), BootMAC: server.BootMAC()}
	}
	return s
}

func (s *store) setDrive(uid string, drive hardware.ConfigDrive) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drives[uid] = drive
}

// ByMAC implements netboot.Store.
func (s *store) ByMAC(_ context.Context, mac string) (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		if session.BootMAC == mac {
			return session, nil
		}
	}
	return netboot.Session{}, hardware.Errorf(hardware.NotFound, "find host", mac, "no server of the rack has this MAC address")
}

// ByUID implements netboot.Store.
func (s *store) ByUID(_ context.Context, uid string) (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, isKnown := s.sessions[uid]
	if !isKnown {
		return session, hardware.Errorf(hardware.NotFound, "find host", uid, "no server of the rack has this uid")
	}
	return session, nil
}

// CachedByMAC implements netboot.Store.
func (s *store) CachedByMAC(ctx context.Context, mac string) (netboot.Session, error) {
	return s.ByMAC(ctx, mac)
}

// CachedByUID implements netboot.Store.
func (s *store) CachedByUID(ctx context.Context, uid string) (netboot.Session, error) {
	return s.ByUID(ctx, uid)
}

// Update implements netboot.Store.
func (s *store) Update(_ context.Context, uid string, change func(*netboot.Session) error) (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, isKnown := s.sessions[uid]
	if !isKnown {
		return session, hardware.Errorf(hardware.NotFound, "update host", uid, "no server of the rack has this uid")
	}
	if err := change(&session); err != nil {
		return s.sessions[uid], err
	}
	s.sessions[uid] = session
	return session, nil
}

// ConfigDrive implements netboot.Store.
func (s *store) ConfigDrive(_ context.Context, uid string, attempt int64) (hardware.ConfigDrive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[uid].Number != attempt {
		return hardware.ConfigDrive{}, hardware.Errorf(hardware.Conflict, "read config drive", uid, "the host is at another attempt")
	}
	return s.drives[uid], nil
}
