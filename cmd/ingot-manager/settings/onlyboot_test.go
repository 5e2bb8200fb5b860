package settings

import (
	"strings"
	"testing"
)

func TestABootServiceAloneListens(t *testing.T) {
	s := Default()
	if err := s.ValidateOnlyBoot(); err != nil {
		t.Error(err)
	}
	s.Boot.Address, s.Boot.HostNamespaces = "0", []string{""}
	err := s.ValidateOnlyBoot()
	if err == nil || !strings.Contains(err.Error(), "boot.address") || !strings.Contains(err.Error(), "boot.hostNamespaces") {
		t.Errorf("%v", err)
	}
	if s.KeyNamespace() != s.Namespace {
		t.Errorf("the key is in %s", s.KeyNamespace())
	}
	if s.Boot.KeyNamespace = "ingot-system"; s.KeyNamespace() != "ingot-system" {
		t.Errorf("the key is in %s", s.KeyNamespace())
	}
}

func TestAManagerThatServesNoBootsHasNoProvisioningNetwork(t *testing.T) {
	const head = "apiVersion: config.ingot.dev/v1alpha1\nkind: ManagerConfiguration\nboot: {address: '0', url: 'http://10.20.0.2:8090'"
	if _, err := Read(strings.NewReader(head + "}\n")); err != nil {
		t.Error(err)
	}
	if _, err := Read(strings.NewReader(head + ", network: {interface: eth1}}\n")); err == nil || !strings.Contains(err.Error(), "boot.network.interface") {
		t.Errorf("%v", err)
	}
}
