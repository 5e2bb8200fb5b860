package machineos

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// ignited boots an image of Fedora CoreOS with the arguments.
func ignited(t *testing.T, text string, machine Machine, arguments ...string) (*System, error) {
	t.Helper()
	image := imageOf("fedora")
	image.KernelArguments = arguments
	return Boot(image, drive("a", text), nil, machine)
}

func TestIgnitionChangesTheCommandLineBeforeTheFirstBoot(t *testing.T) {
	const text = `{"ignition": {"version": "3.4.0"}, "kernelArguments": {"shouldExist": ["modprobe.blacklist=nouveau", "intel_iommu=on"], "shouldNotExist": ["quiet"]},
		"storage": {"files": [{"path": "/etc/modules-load.d/x.conf", "contents": {"source": "data:,vfio-pci%0Anouveau%0A"}},
			{"path": "/etc/modprobe.d/x.conf", "contents": {"source": "data:,options%20vfio-pci%20ids%3D10de%3A2330%0A"}}]}}`
	var began []string
	machine := Machine{OnColdplug: func(s *System) { began = s.KernelArguments() }}
	s, err := ignited(t, text, machine, "quiet", "intel_iommu=on", "ignition.platform.id=openstack")
	want := []string{"intel_iommu=on", "ignition.platform.id=openstack", "modprobe.blacklist=nouveau"}
	if err != nil || !slices.Equal(s.KernelArguments(), want) || !slices.Equal(began, want) {
		t.Errorf("the kernel boots with %q, and began with %q, want %q: %v", s.KernelArguments(), began, want, err)
	}
	if !s.IsModuleLoaded("vfio-pci") || s.ModuleOptions("vfio_pci")["ids"] != "10de:2330" || s.IsModuleLoaded("nouveau") || !s.IsModuleBlacklisted("nouveau") {
		t.Errorf("vfio-pci %t %v, nouveau %t", s.IsModuleLoaded("vfio-pci"), s.ModuleOptions("vfio-pci"), s.IsModuleLoaded("nouveau"))
	}
}

func TestCloudInitComesTooLateForTheFirstBootsDevices(t *testing.T) {
	const text = `#cloud-config
write_files:
- {path: /etc/modprobe.d/x.conf, content: "blacklist nouveau\noptions vfio-pci ids=1:2\n"}
- {path: /etc/modules-load.d/x.conf, content: "vfio-pci\nnvidia\n"}
`
	late, err := Boot(imageOf("debian"), drive("a", text), nil, Machine{})
	if err != nil || late.IsModuleLoaded("vfio-pci") || late.IsModuleBlacklisted("nouveau") {
		t.Errorf("vfio-pci is loaded: %t, nouveau is kept away: %t, %v", late.IsModuleLoaded("vfio-pci"), late.IsModuleBlacklisted("nouveau"), err)
	}
	next, err := Boot(imageOf("debian"), nil, &late.State, Machine{})
	if err != nil || !next.IsModuleLoaded("vfio-pci") || !next.IsModuleBlacklisted("nouveau") {
		t.Errorf("the next boot: vfio-pci is loaded: %t, nouveau is kept away: %t, %v", next.IsModuleLoaded("vfio-pci"), next.IsModuleBlacklisted("nouveau"), err)
	}
	const restart = "runcmd: [[systemctl, restart, systemd-modules-load], modprobe tun, modprobe nvidia]\n"
	image := imageOf("debian")
	image.Software.GPUDriver = nil
	now, err := Boot(image, drive("a", text+restart), nil, Machine{})
	if err != nil || !now.IsModuleLoaded("vfio-pci") || !now.IsModuleLoaded("tun") || now.ModuleOptions("vfio-pci")["ids"] != "1:2" {
		t.Errorf("loaded again: %t, by hand: %t, %v", now.IsModuleLoaded("vfio-pci"), now.IsModuleLoaded("tun"), err)
	}
	if now.IsModuleLoaded("nvidia") || len(now.Failed) != 2 {
		t.Errorf("NVIDIA's module without its driver: %t, %v", now.IsModuleLoaded("nvidia"), now.Failed)
	}
}

func TestASystemThatIgnitionRefusesDoesNotComeUp(t *testing.T) {
	for sentence, text := range map[string]string{
		"cut off": `{"ignition": {"version": "3.4.0"}, "storage": {"files": [`, "cloud-config": "#cloud-config\n", "another version": `{"ignition": {"version": "3.99.0"}}`,
		"a file where none can be": `{"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "/usr/bin/x"}]}}`,
	} {
		s, err := ignited(t, text, Machine{})
		if !errors.Is(err, ErrEmergency) || s == nil || len(s.running) > 0 || s.Ignited || len(s.Files) > 0 {
			t.Fatalf("%s: %v, %+v", sentence, err, s)
		}
		// The next boot begins again, and takes what is there by then.
		again, err := Boot(imageOf("fedora"), drive("a", `{"ignition": {"version": "3.4.0"}}`), &s.State, Machine{})
		if err != nil || !again.Ignited {
			t.Errorf("%s, and mended: %v", sentence, err)
		}
	}
}

func TestWithoutAConfigurationTheSystemIsTheImages(t *testing.T) {
	const text = `{"ignition": {"version": "3.4.0"}, "systemd": {"units": [{"name": "kubelet.service", "enabled": true}]}}`
	if s, err := ignited(t, text, Machine{}); err != nil || !s.IsRunning("kubelet") {
		t.Errorf("a config drive: %v", err)
	}
	if s, err := ignited(t, text, Machine{}, "ignition.platform.id=metal"); err != nil || s.IsRunning("kubelet") || s.Hostname != "localhost" {
		t.Errorf("an image for another platform reads no config drive: %v", err)
	}
	if s, err := Boot(imageOf("fedora"), nil, nil, Machine{}); err != nil || s.IsRunning("kubelet") || !s.Ignited {
		t.Errorf("no config drive: %v", err)
	}
}

func TestUnitsAreEnabledAsSystemdWould(t *testing.T) {
	const unit = `{"name": "UNIT.service", "enabled": true, "contents": "[Service]\nExecStart=/x\nINSTALL"}`
	const install = `[Install]\nWantedBy=multi-user.target\n`
	entry := func(name, install string) string {
		return strings.NewReplacer("UNIT", name, "INSTALL", install).Replace(unit)
	}
	text := `{"ignition": {"version": "3.4.0"}, "storage": {"links": [
		{"path": "/etc/systemd/system/multi-user.target.wants/linked.service", "target": "/usr/lib/systemd/system/linked.service"},
		{"path": "/etc/systemd/system/stopped.service", "target": "/dev/null"},
		{"path": "/etc/first", "target": "second"}, {"path": "/etc/second", "target": "/etc/third"}, {"path": "/etc/self", "target": "self"}],
		"files": [{"path": "/etc/third", "contents": {"source": "data:,x"}}]},
		"systemd": {"units": [` + entry("whole", install) + "," + entry("bare", "") + "," + entry("lost", install) + `,
		{"name": "off.service", "enabled": false}, {"name": "masked.service", "enabled": true, "mask": true}, {"name": "stopped.service", "enabled": true}]}}`
	s, err := ignited(t, text, Machine{Missing: []string{"lost.service"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"whole": true, "linked": true, "bare": false, "lost": false, "off": false, "masked": false, "stopped": false} {
		if s.IsRunning(name) != want {
			t.Errorf("%s runs: %t, %v", name, !want, s.Failure(name))
		}
	}
	if content, ok := s.File("/etc/first"); !ok || string(content) != "x" {
		t.Errorf("a link to a link: %q, %t", content, ok)
	}
	if _, ok := s.File("/etc/self"); ok {
		t.Error("a link to itself is a file")
	}
}

func TestCloudInitTellsOfANetworkThatIsNotThere(t *testing.T) {
	const network = `{"links": [{"id": "eno1", "type": "phy", "ethernet_mac_address": "52:54:00:AA:bb:01"}], "networks": [{"link": "eno1", "type": "ipv4", "ip_address": "10.0.0.7/24"}]}`
	given := drive("a", userData)
	given.NetworkData = []byte(network)
	s, err := Boot(imageOf("debian"), given, nil, Machine{MACs: []string{"52:54:00:aa:bb:01"}})
	if err != nil || !slices.Equal(s.Network.Addresses(), []string{"10.0.0.7"}) {
		t.Errorf("addresses %v, %v", s.Network.Addresses(), err)
	}
	s, err = Boot(imageOf("debian"), given, nil, Machine{MACs: []string{"52:54:00:aa:bb:02"}})
	if err == nil || !strings.Contains(err.Error(), "eno1") || !s.IsRunning("one") {
		t.Errorf("the rest of cloud-init does its work, and the error names the link: %v", err)
	}
}

func TestScriptsOfCloudInitRunByTheirNamesAndMayFail(t *testing.T) {
	var calls []string
	failed := errors.New("failed")
	machine := Machine{Programs: map[string]Program{"say": func(words []string, _ map[string]string, _ func(string) ([]byte, error)) error {
		calls = append(calls, words[0])
		if words[0] == "a" {
			return failed
		}
		return nil
	}}}
	part := func(name, text string) string {
		return "--b\nContent-Type: text/x-shellscript\nContent-Disposition: attachment; filename=\"" + name + "\"\n\n#!/bin/sh\n" + text + "\n"
	}
	text := "Content-Type: multipart/mixed; boundary=\"b\"\nMIME-Version: 1.0\n\n" + part("z", "say z") + part("a", "set -e\nsay a\nsay never") + part("m", "systemctl start one\nsystemctl is-active one && say m\nsystemctl is-active two") +
		"--b\nContent-Type: text/cloud-config\n\n#cloud-config\nruncmd: [say r]\nssh_authorized_keys: [k]\n\n--b--\n"
	s, err := Boot(imageOf("debian"), drive("a", text), nil, machine)
	if want := []string{"a", "m", "r", "z"}; err != nil || !slices.Equal(calls, want) {
		t.Errorf("called %v, want %v: %v", calls, want, err)
	}
	if len(s.Failed) != 2 || !errors.Is(s.Failed[0], failed) || !errors.Is(s.Failed[1], errInactive) {
		t.Errorf("what failed: %v", s.Failed)
	}
	if keys, ok := s.File("/home/debian/.ssh/authorized_keys"); !ok || string(keys) != "k\n" {
		t.Errorf("the keys are %q", keys)
	}
	if again, err := Boot(imageOf("debian"), drive("a", text), &s.State, machine); err != nil || len(calls) != 4 || len(again.Failed) > 0 {
		t.Errorf("the next boot: %v, %v", calls, err)
	}
}
