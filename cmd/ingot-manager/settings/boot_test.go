package settings

import (
	"strings"
	"testing"
)

func TestAProcessThatServesBootsNeedsToKnowWhereServersReachIt(t *testing.T) {
	s := Default()
	s.Boot.URL = "http://10.20.0.2:8090"
	if err := s.ValidateBoot(); err != nil {
		t.Error(err)
	}
	s.Boot.URL, s.Boot.HostNamespaces = "", []string{""}
	err := s.ValidateBoot()
	if err == nil || !strings.Contains(err.Error(), "boot.url") || !strings.Contains(err.Error(), "boot.hostNamespaces") {
		t.Errorf("%v", err)
	}
	if s.KeyNamespace() != s.Namespace {
		t.Errorf("the key is in %s", s.KeyNamespace())
	}
	if s.Boot.KeyNamespace = "ingot-system"; s.KeyNamespace() != "ingot-system" {
		t.Errorf("the key is in %s", s.KeyNamespace())
	}
}

// TestAManagerThatServesNoBootsNeedsNoBootSection: every NodeProvider may name its boot service.
func TestAManagerThatServesNoBootsNeedsNoBootSection(t *testing.T) {
	const head = "apiVersion: config.ingot.dev/v1alpha1\nkind: ManagerConfiguration\n"
	if _, err := Read(strings.NewReader(head)); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"boot: {address: '0'}", "boot: {url: 'ftp://a'}"} {
		if _, err := Read(strings.NewReader(head + wrong + "\n")); err == nil || !strings.Contains(err.Error(), "boot.") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
