package sessions

import (
	"context"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// KnownByMAC returns the session of a host of Ingot with the boot MAC address, from the cache only; found is false for a stranger's. Of several
// hosts with the address it returns any, because all of them are known: ByMAC decides which is served.
func (s *Store) KnownByMAC(ctx context.Context, mac string) (known netboot.Session, found bool, err error) {
	hosts, err := s.listHosts(ctx, opByMAC, indexBootMAC, mac)
	if err != nil {
		return netboot.Session{}, false, err
	}
	for i := range hosts {
		record, err := s.readRecord(ctx, s.Client, opByMAC, &hosts[i])
		if hardware.KindOf(err) == hardware.NotFound {
			continue
		}
		if err != nil {
			return netboot.Session{}, false, err
		}
		return s.session(&hosts[i], record), true, nil
	}
	return netboot.Session{}, false, nil
}

// BootMACs returns the boot MAC addresses of all hosts, in lower case, from the cache.
func (s *Store) BootMACs(ctx context.Context) ([]string, error) {
	var hosts metal3.BareMetalHostList
	if err := s.Client.List(ctx, &hosts); err != nil {
		return nil, apiError("list boot MAC addresses", "", err)
	}
	var out []string
	for i := range hosts.Items {
		if mac := hosts.Items[i].Spec.BootMACAddress; mac != "" {
			out = append(out, strings.ToLower(mac))
		}
	}
	return out, nil
}
