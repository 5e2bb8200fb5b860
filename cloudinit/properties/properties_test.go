package properties

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// texts compares a template by its text.
var texts = cmpopts.IgnoreFields(Text{}, "Template")

func levels(provider, nodeType, machine map[string]string) []Level {
	return []Level{{Name: "NodeProvider hall-1", Values: provider}, {Name: "NodeType h100", Values: nodeType}, {Name: "Machine a-1", Values: machine, Tenant: true}}
}

func TestTheNearestPropertyWinsKeyByKey(t *testing.T) {
	got, err := Resolve(levels(
		map[string]string{"rack": "provider", "row": "provider", NetworkCIDR: "10.20.4.1/22", DNSServers: "10.20.0.1, fd00::1", UserDataTemplate: "#cloud-config\n{{ .Values.Gateway }}"},
		map[string]string{"rack": "node type", NetworkCIDR: "10.20.4.2/22", NetworkIPRange: "10.20.4.17-10.20.4.99,10.20.5.1-10.20.5.9", SSHKeys: "# ops\nssh-ed25519 AAAA ops\n"},
		map[string]string{"rack": "machine", UserData: "#cloud-config\n", DNSServers: "10.20.0.9"}))
	if err != nil {
		t.Fatal(err)
	}
	if got.Values["rack"] != "machine" || got.Values["row"] != "provider" || got.CIDR != "10.20.4.2/22" {
		t.Errorf("the values are %v", got.Values)
	}
	want := Resolved{
		Values: got.Values, UserData: Text{Level: "Machine a-1", Key: "vcluster.com/user-data", Text: "#cloud-config\n"},
		UserDataTemplate: Text{Level: "NodeProvider hall-1", Key: "ingot.dev/user-data-template", Text: "#cloud-config\n{{ .Values.Gateway }}"},
		CIDR:             "10.20.4.2/22", Ranges: "10.20.4.17-10.20.4.99,10.20.5.1-10.20.5.9", Resolvers: []string{"10.20.0.9"}, SSHKeys: []string{"ssh-ed25519 AAAA ops"},
	}
	if diff := cmp.Diff(want, got, texts); diff != "" {
		t.Error(diff)
	}
}

func TestPropertiesThatCannotStandAreNamed(t *testing.T) {
	for key, value := range map[string]string{
		"vcluster.com/os-image": "ubuntu", "vcluster.com/user-data-template-config": "x", "vcluster.com/network-data-template-config": "x",
		"vcluster.com/network-environment": "x", "metal3.vcluster.com/image-url": "x", "metal3.vcluster.com/image-checksum": "x",
		"metal3.vcluster.com/image-checksum-type": "md5", "metal3.vcluster.com/server-name": "x",
		"vcluster.com/userdata": "misspelt", "ingot.dev/x": "y",
		UserDataTemplate: "{{ .Values.Gateway }}", NetworkDataTemplate: "{}",
		NetworkData: `{"links": []}`, NetworkCIDR: "10.20.4.1/22", NetworkIPRange: "10.20.4.9-10.20.4.99", DNSServers: "dns.example.com", SSHKeys: "ops-team",
	} {
		_, err := Resolve(levels(nil, nil, map[string]string{key: value}))
		var bad *Invalid
		if !errors.As(err, &bad) || len(bad.Findings) != 1 || bad.Findings[0].Key != key || bad.Findings[0].Level != "Machine a-1" {
			t.Errorf("%s: error %v, want one finding of the Machine", key, err)
		}
	}
	for key, value := range map[string]string{NetworkCIDR: "10.20.4.0", NetworkIPRange: "10.20.4.9-10.20.4.1", NetworkData: `{"links": []}`, NetworkDataTemplate: "{{ .Values.Nope }}"} {
		_, err := Resolve(levels(nil, map[string]string{key: value}, nil))
		var bad *Invalid
		if !errors.As(err, &bad) || len(bad.Findings) != 1 || bad.Findings[0].Level != "NodeType h100" {
			t.Errorf("%s: error %v, want one finding of the NodeType", key, err)
		}
	}
	_, err := Resolve(levels(map[string]string{UserDataTemplate: "{{ now }}"}, map[string]string{NetworkCIDR: "10.20.4.1/22", NetworkIPRange: "10.20.4.1-10.20.4.9"}, nil))
	var bad *Invalid
	if !errors.As(err, &bad) || len(bad.Findings) != 2 {
		t.Errorf("error %v, want a finding about the template and one about the gateway in the ranges", err)
	}
}

func TestAMachinesAuthorCannotTakeAnothersAddress(t *testing.T) {
	whole := `{"links": [{"id": "eno1", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:01"}], "networks": [{"id": "n", "link": "eno1", "type": "ipv4", "ip_address": "10.20.5.99", "netmask": "255.255.252.0"}]}`
	for key, value := range map[string]string{NetworkData: whole, NetworkCIDR: "10.20.4.1/16", NetworkIPRange: "10.0.0.1-10.255.255.254"} {
		_, err := Resolve(levels(map[string]string{NetworkCIDR: "10.20.4.1/22", NetworkIPRange: "10.20.5.1-10.20.5.50"}, nil, map[string]string{key: value}))
		if err == nil || !strings.Contains(err.Error(), "Machine a-1: property "+key+": ") || !strings.Contains(err.Error(), "on the NodeType or the NodeProvider") ||
			!strings.Contains(err.Error(), "ingot.dev/ip-address") || strings.Contains(err.Error(), "10.") {
			t.Errorf("%s: error %v, want one that names who may set it, and where, and quotes no value", key, err)
		}
		if _, err := Resolve(levels(nil, map[string]string{key: value}, nil)); err != nil {
			t.Errorf("%s of a NodeType: %v", key, err)
		}
	}
	got, err := Resolve(levels(map[string]string{DNSServers: "10.20.0.1"}, nil, map[string]string{DNSServers: "10.20.0.9"}))
	if err != nil || !slices.Equal(got.Resolvers, []string{"10.20.0.9"}) {
		t.Errorf("a Machine's resolvers: %v, %v", got.Resolvers, err)
	}
}

func TestEveryKeyOfVMetalIsKnown(t *testing.T) {
	for _, name := range []string{"os-image", "ssh-keys", "user-data", "user-data-template-config", "network-data-template-config", "network-environment"} {
		known(t, "vcluster.com/"+name)
	}
	for _, name := range []string{"image-url", "image-checksum", "image-checksum-type", "network-cidr", "network-ip-range", "dns-servers", "network-data", "server-name"} {
		known(t, "metal3.vcluster.com/"+name)
	}
}

func known(t *testing.T, key string) {
	t.Helper()
	_, understood := knownKeys[key]
	if _, refused := unsupportedKeys[key]; understood == refused {
		t.Errorf("%s must be understood, or refused with the field that takes its place", key)
	}
}

func FuzzResolve(f *testing.F) {
	f.Add(NetworkIPRange, "10.0.0.1-10.0.0.9,fd00::1-fd00::9")
	f.Add(NetworkCIDR, "10.0.0.1/24")
	f.Add(SSHKeys, "ssh-ed25519 A\n# x\n")
	f.Add(UserDataTemplate, "{{ .Values }}")
	f.Add("rack", "r1")
	f.Fuzz(func(t *testing.T, key, value string) {
		one, err := Resolve([]Level{{Name: "l", Values: map[string]string{key: value}}})
		if err != nil {
			var bad *Invalid
			if !errors.As(err, &bad) || len(bad.Findings) == 0 {
				t.Fatalf("%q: error %v", key, err)
			}
			return
		}
		two, err := Resolve([]Level{{Name: "l", Values: map[string]string{key: "other"}}, {Name: "l", Values: map[string]string{key: value}}})
		if err != nil || !cmp.Equal(one, two, texts) {
			t.Fatalf("%q: an overridden value leaves a trace: %v", key, err)
		}
		if slices.ContainsFunc(one.SSHKeys, func(k string) bool { return strings.Contains(k, "\n") }) {
			t.Fatalf("a key of several lines: %q", one.SSHKeys)
		}
	})
}
