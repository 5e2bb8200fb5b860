package direct_test

import (
	"context"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// store keeps one host's session as Kubernetes would: times lose what is below a second.
type store struct {
	mu      sync.Mutex
	session netboot.Session
	writes  int
	// isShared is true when another host has the boot MAC address.
	isShared bool
}

func (s *store) ByMAC(_ context.Context, mac string) (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isShared {
		return netboot.Session{}, hardware.Errorf(hardware.Conflict, "find host", mac, "both a and b have this spec.bootMACAddress")
	}
	if s.session.BootMAC != mac {
		return netboot.Session{}, hardware.Errorf(hardware.NotFound, "find host", mac, "no such host")
	}
	return s.copy(), nil
}

func (s *store) CachedByMAC(ctx context.Context, mac string) (netboot.Session, error) {
	return s.ByMAC(ctx, mac)
}

func (s *store) CachedByUID(ctx context.Context, uid string) (netboot.Session, error) {
	return s.ByUID(ctx, uid)
}

func (s *store) ByUID(_ context.Context, uid string) (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session.HostUID != uid {
		return netboot.Session{}, hardware.Errorf(hardware.NotFound, "find host", uid, "no such host")
	}
	return s.copy(), nil
}

func (s *store) Update(_ context.Context, uid string, change func(*netboot.Session) error) (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session.HostUID != uid {
		return netboot.Session{}, hardware.Errorf(hardware.NotFound, "find host", uid, "no such host")
	}
	// It runs more than once, as after a conflict.
	for range 2 {
		next := s.copy()
		if err := change(&next); err != nil {
			return netboot.Session{}, err
		}
	}
	next := s.copy()
	if err := change(&next); err != nil {
		return netboot.Session{}, err
	}
	for _, instant := range []*time.Time{&next.Since, &next.StepAt, &next.OpenedAt, &next.Deadline} {
		*instant = instant.Truncate(time.Second)
	}
	s.session = next
	s.writes++
	return s.copy(), nil
}

func (s *store) ConfigDrive(_ context.Context, uid string, attempt int64) (hardware.ConfigDrive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session.HostUID != uid || s.session.Number != attempt {
		return hardware.ConfigDrive{}, hardware.Errorf(hardware.Conflict, "read config drive", uid, "not the current attempt")
	}
	return hardware.ConfigDrive{UserData: []byte("#cloud-config\n")}, nil
}

func (s *store) copy() netboot.Session {
	session := s.session
	if session.Inventory != nil {
		inventory := *session.Inventory
		session.Inventory = &inventory
	}
	return session
}
