package cloudinit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/network"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/cloudinit/templates"
)

const networkTemplate = `links:
- {id: eno1, type: phy, ethernet_mac_address: "{{ .Values.BareMetalHost.spec.bootMACAddress }}"}
- {id: eno2, type: phy, ethernet_mac_address: "{{ index .Values.BareMetalHost.metadata.annotations "hall.example.com/second-mac" }}"}
- {id: bond0, type: bond, bond_links: [eno1, eno2], bond_mode: 802.3ad, bond_miimon: 100, ethernet_mac_address: "{{ .Values.BareMetalHost.spec.bootMACAddress }}"}
- {id: bond0.{{ .Values.Properties.vlan }}, type: vlan, vlan_link: bond0, vlan_id: {{ .Values.Properties.vlan }}, vlan_mac_address: "{{ .Values.BareMetalHost.spec.bootMACAddress }}"}
networks:
- id: n0
  link: bond0
  type: ipv4
  ip_address: {{ .Values.AllocatedIP }}/{{ .Values.PrefixLength }}
  routes: [{network: 0.0.0.0, netmask: 0.0.0.0, gateway: {{ .Values.Gateway }}}]
- {id: n1, link: bond0.{{ .Values.Properties.vlan }}, type: ipv4, ip_address: 10.30.0.17/24}
services:
- {type: dns, address: 10.20.0.1}
`

// described is a node most of which is said by properties: its network by a template, and user data that is a script.
func described(t testing.TB) Input {
	in := full(t)
	in.Machine.Namespace = "research"
	in.Host.BootMAC = strings.ToLower(in.Host.BootMAC)
	in.Host.Name, in.Host.Annotations = "rack1-n1", map[string]string{"hall.example.com/second-mac": "52:54:00:aa:bb:02"}
	in.Properties = []properties.Level{
		{Name: "NodeProvider hall-1", Values: map[string]string{properties.NetworkDataTemplate: networkTemplate, "vlan": "100", "motd": "provider"}},
		{Name: "NodeType h100", Values: map[string]string{"vlan": "120", properties.SSHKeys: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDev dev\n",
			properties.UserDataTemplate: "#!/bin/sh\n# für {{ .Values.NodeClaim.Name }} in {{ .Values.Project.Name }}\necho {{ .Values.Properties.motd | quote }} > /etc/motd\n"}},
		{Name: "Machine training-7xk2p", Values: map[string]string{"motd": "machine"}, Tenant: true},
	}
	return in
}

// parts are those of a MIME message, by the name of their files.
func parts(t *testing.T, message []byte) (names []string, contents map[string]string) {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	contents = map[string]string{}
	reader := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return names, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, p))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, p.FileName())
		contents[p.FileName()] = string(text)
	}
}

func TestAScriptIsAPartOfItsOwnAndRunsBeforeIngotsCommands(t *testing.T) {
	docs, err := Render(described(t))
	if err != nil {
		t.Fatal(err)
	}
	names, contents := parts(t, docs.UserData)
	if len(names) != 2 || names[1] >= "runcmd" {
		t.Fatalf("the parts are %v: a script must sort before runcmd, the name under which cloud-init runs all of runcmd", names)
	}
	const want = "#!/bin/sh\n# für training-7xk2p in research\necho \"machine\" > /etc/motd\n"
	if contents[names[1]] != want {
		t.Errorf("the script is %q, want %q", contents[names[1]], want)
	}
	in := described(t)
	in.Properties[1].Values[properties.UserDataTemplate] = ""
	plain, err := Render(in)
	if err != nil || string(plain.UserData) != contents[names[0]] {
		t.Errorf("the cloud-config beside the script is another than without it: %v", err)
	}
	if !strings.Contains(contents[names[0]], "IDev dev") || !strings.Contains(contents[names[0]], "IOps ops") {
		t.Error("the SSH keys of the spec and of the property must both be authorized")
	}
}

func TestUserDataBeatsItsTemplateAndComesLast(t *testing.T) {
	in := described(t)
	in.Properties[0].Values[properties.UserData] = "#cloud-config\ntimezone: Asia/Tokyo\nruncmd:\n- echo property\n"
	docs, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	text := string(docs.UserData)
	if !strings.HasPrefix(text, "#cloud-config\n") || !strings.Contains(text, "timezone: Asia/Tokyo\n") || strings.Index(text, "echo property") < strings.Index(text, "echo node type") {
		t.Errorf("the property must be the last layer:\n%s", text)
	}
	in.Properties[2].Values[properties.UserData] = "#cloud-config\nhostname: mine\n"
	var conflict *Conflict
	if _, err := Render(in); !errors.As(err, &conflict) || conflict.Findings[0].Layer != "Machine training-7xk2p" || conflict.Findings[0].Property != properties.UserData {
		t.Errorf("error %v, want a conflict that names the property", err)
	}
}

func TestNetworkDataBeatsItsTemplateAndTheTemplateTheCIDR(t *testing.T) {
	in := described(t)
	docs, err := Render(in)
	if err != nil || !strings.Contains(string(docs.NetworkData), `"vlan_id": 120`) {
		t.Fatalf("%v, the template was not used:\n%s", err, docs.NetworkData)
	}
	in.Properties[0].Values[properties.NetworkData] = `{"links": [{"id": "x", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:09"}], "networks": [], "services": []}`
	if docs, err = Render(in); err != nil || !strings.Contains(string(docs.NetworkData), "bb:09") || strings.Contains(string(docs.NetworkData), "vlan") {
		t.Errorf("%v, the document was not used:\n%s", err, docs.NetworkData)
	}
	in = full(t)
	in.Properties = []properties.Level{{Name: "l", Values: map[string]string{properties.NetworkCIDR: "10.20.5.1/24", properties.DNSServers: "10.20.0.9"}}}
	in.Host.IPAddress = "10.20.5.17"
	if docs, err = Render(in); err != nil || !strings.Contains(string(docs.NetworkData), `"gateway": "10.20.5.1"`) || !strings.Contains(string(docs.NetworkData), "10.20.0.9") {
		t.Errorf("%v, the properties did not win over the NodeProvider's network:\n%s", err, docs.NetworkData)
	}
	in.Properties[0].Values[properties.NetworkIPRange] = "10.20.5.20-10.20.5.29"
	var bad *network.Invalid
	if _, err := Render(in); !errors.As(err, &bad) {
		t.Errorf("error %v, want one about an address outside of the ranges", err)
	}
}

func TestMistakesInPropertiesAndTemplatesAreTypedErrors(t *testing.T) {
	in := described(t)
	in.Properties[1].Values["vcluster.com/user-dat"] = "x"
	var wrong *properties.Invalid
	if _, err := Render(in); !errors.As(err, &wrong) {
		t.Errorf("error %v, want *properties.Invalid", err)
	}
	in = described(t)
	delete(in.Host.Annotations, "hall.example.com/second-mac")
	in.Properties[1].Values[properties.UserDataTemplate] = "{{ .Values.Properties.nosuch }}"
	var template *templates.Invalid
	if _, err := Render(in); !errors.As(err, &template) {
		t.Errorf("error %v, want *templates.Invalid", err)
	}
	if _, err := NetworkConfig(in); err == nil {
		t.Error("the same mistakes are no errors for network-config")
	}
}

func TestAWarningAboveSixteenKiB(t *testing.T) {
	in := plain()
	in.Layers = []Layer{{Name: "l", Text: "#cloud-config\nbig: " + strings.Repeat("x", LargeUserData) + "\n"}}
	docs, err := Render(in)
	if err != nil || len(docs.Warnings()) != 1 {
		t.Errorf("%v, warnings %v, want one", err, docs.Warnings())
	}
	if docs, err = Render(plain()); err != nil || len(docs.Warnings()) != 0 {
		t.Errorf("%v, warnings %v, want none", err, docs.Warnings())
	}
}

func TestRenderingLeavesItsInputAlone(t *testing.T) {
	in := described(t)
	in.Network = &v1alpha1.NetworkSpec{CIDR: "10.20.4.1/22"}
	in.Layers = append(make([]Layer, 0, 8), in.Layers...)
	in.Properties[0].Values[properties.UserData] = "#cloud-config\n"
	in.Properties[0].Values[properties.NetworkCIDR] = "10.20.4.2/22"
	if _, err := Render(in); err != nil {
		t.Fatal(err)
	}
	if in.Network.CIDR != "10.20.4.1/22" || in.Layers[:3][2].Name != "" {
		t.Error("Render changed what it was given")
	}
}

func TestWhatIsWrongWhateverTheMachineIsFoundBeforeThereIsOne(t *testing.T) {
	good := func() Input {
		in := described(t)
		in.Machine, in.Host, in.Join = MachineInput{}, HostInput{}, nil
		return in
	}
	if err := Check(good()); err != nil {
		t.Errorf("a good node: %v", err)
	}
	for _, system := range []string{"flatcar", "rhcos"} {
		in := ignited(t, system)
		in.Machine, in.Host, in.Join = MachineInput{}, HostInput{}, nil
		if err := Check(in); err != nil {
			t.Errorf("%s: %v", system, err)
		}
	}
	for sentence, change := range map[string]func(*Input){
		"a key that is not known":     func(in *Input) { in.Properties[0].Values["ingot.dev/x"] = "y" },
		"a template that is none":     func(in *Input) { in.Properties[1].Values[properties.UserDataTemplate] = "{{" },
		"user data that fights":       func(in *Input) { in.Properties[0].Values[properties.UserData] = "#cloud-config\nhostname: x\n" },
		"a layer that fights":         func(in *Input) { in.Layers[0].Text = "#cloud-config\nfqdn: x\n" },
		"network data of netplan":     func(in *Input) { in.Properties[0].Values[properties.NetworkData] = "version: 2\n" },
		"ranges outside":              func(in *Input) { in.Properties[0].Values[properties.NetworkIPRange] = "10.99.0.1-10.99.0.9" },
		"ranges without a network":    func(in *Input) { in.Network, in.Properties[0].Values[properties.NetworkIPRange] = nil, "10.99.0.1" },
		"an unknown kind":             func(in *Input) { in.Kind = "Kickstart" },
		"cloud-config for Ignition":   func(in *Input) { in.Kind, in.OS = v1alpha1.UserDataIgnition, "flatcar" },
		"a system Ignition knows not": func(in *Input) { in.Kind, in.OS, in.Layers = v1alpha1.UserDataIgnition, "debian", nil },
		"kernel arguments, openshift": func(in *Input) { in.Kind, in.OS, in.Layers = v1alpha1.UserDataIgnition, "rhcos", nil },
		"packages for Ignition": func(in *Input) {
			in.Kind, in.OS, in.Layers, in.Plan.Packages = v1alpha1.UserDataIgnition, "fedora", nil, []string{"x"}
		},
	} {
		in := good()
		change(&in)
		if err := Check(in); err == nil {
			t.Errorf("%s was taken", sentence)
		}
	}
}

func TestAHostThatComesFromVMetalKeepsItsAnnotations(t *testing.T) {
	in := full(t)
	in.Host = HostOf("rack1-n1", "52:54:00:aa:bb:01", nil, map[string]string{
		"metal3.vcluster.com/ip-address": "10.20.5.18/22", "metal3.vcluster.com/gateway": "10.20.4.2", "metal3.vcluster.com/dns-servers": "10.20.0.7, 10.20.0.8",
	})
	docs, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ip_address": "10.20.5.18"`, `"gateway": "10.20.4.2"`, "10.20.0.7", "10.20.0.8"} {
		if !strings.Contains(string(docs.NetworkData), want) {
			t.Errorf("the network data lacks %s:\n%s", want, docs.NetworkData)
		}
	}
	if got := HostOf("n", "m", nil, map[string]string{v1alpha1.AnnotationIPAddress: "10.0.0.1", "metal3.vcluster.com/ip-address": "10.0.0.2"}); got.IPAddress != "10.0.0.1" {
		t.Errorf("the address is %s: Ingot's own annotation must win", got.IPAddress)
	}
}

func TestTemplatesAreCheckedAgainstTheValuesThatTheySee(t *testing.T) {
	values, err := templateValues(Input{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(templates.Values, slices.Sorted(maps.Keys(values))); diff != "" {
		t.Errorf("package templates knows other names: %s", diff)
	}
}

// TestAnSSHKeyThatSeveralObjectsNameIsAuthorizedOnce has a key that both the spec and a property have, and one that a property repeats.
func TestAnSSHKeyThatSeveralObjectsNameIsAuthorizedOnce(t *testing.T) {
	const ops, dev = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOps ops", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDev dev"
	for _, kind := range []v1alpha1.UserDataKind{v1alpha1.UserDataCloudInit, v1alpha1.UserDataIgnition} {
		in := plain()
		in.Kind = kind
		if kind == v1alpha1.UserDataIgnition {
			in.OS = "flatcar"
		}
		in.SSHKeys = []string{ops}
		in.Properties = []properties.Level{{Name: "NodeType h100", Values: map[string]string{properties.SSHKeys: dev + "\n" + ops + "\n" + dev + "\n"}}}
		documents, err := Render(in)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		for _, key := range []string{ops, dev} {
			if n := strings.Count(string(documents.UserData), key); n != 1 {
				t.Errorf("%s: the key %q is authorized %d times, want once:\n%s", kind, key, n, documents.UserData)
			}
		}
	}
}
