package cloudinit

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_4"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

var teams = map[string]string{
	"fedora": "variant: fcos\nversion: 1.5.0\n", "flatcar": "variant: flatcar\nversion: 1.1.0\n",
	"rhcos": "variant: openshift\nversion: 4.16.0\nmetadata:\n  name: team\n  labels:\n    machineconfiguration.openshift.io/role: worker\n",
}

// ignited is the full node on an image that reads Ignition; on Fedora CoreOS with bonds and VLANs.
func ignited(t testing.TB, system string) Input {
	in := full(t)
	if system == "fedora" {
		in = described(t)
		delete(in.Properties[1].Values, "ingot.dev/user-data-template")
	}
	in.Kind, in.OS = v1alpha1.UserDataIgnition, system
	in.Layers = []Layer{{Name: "NodeType h100", Text: teams[system] + "storage:\n  files:\n  - path: /etc/motd\n    mode: 0644\n    overwrite: true\n    contents:\n      inline: hello\n"}}
	if system == "rhcos" {
		in.KernelArguments = in.Plan.KernelArguments
	}
	return in
}

// TestIgnitionReadsTheGoldenFiles reads them with Ignition's own parser and validator, as an image does.
func TestIgnitionReadsTheGoldenFiles(t *testing.T) {
	names, err := filepath.Glob("testdata/*.user-data.ign")
	if err != nil || len(names) < 3 {
		t.Fatalf("golden files %v, %v", names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		config, said, err := v3_4.Parse(text)
		if err != nil || len(said.Entries) > 0 {
			t.Errorf("%s: Ignition says: %v %s", name, err, said.String())
			continue
		}
		var units []string
		for _, u := range config.Systemd.Units {
			units = append(units, u.Name)
		}
		if !slices.Contains(units, "kubelet.service") || !slices.Contains(units, "ingot-gpu-mode.service") {
			t.Errorf("%s: the units are %v", name, units)
		}
	}
}

func TestIgnitionFailsWithTheTypesOfCloudInit(t *testing.T) {
	in := ignited(t, "fedora")
	in.Layers[0].Text = teams["fedora"] + "storage:\n  files:\n  - path: /etc/kubernetes/kubelet.yaml\n"
	var conflict *Conflict
	if _, err := Render(in); !errors.As(err, &conflict) || conflict.Findings[0].Path != "storage.files[0].path" {
		t.Errorf("error %v, want *Conflict", err)
	}
	in.Layers[0].Text = "#cloud-config\n"
	var invalid *Invalid
	if _, err := Render(in); !errors.As(err, &invalid) {
		t.Errorf("error %v, want *Invalid", err)
	}
	in.OS = "debian"
	var lacks *Unsupported
	if _, err := Render(in); !errors.As(err, &lacks) || !strings.Contains(err.Error(), "debian") {
		t.Errorf("error %v, want *Unsupported", err)
	}
}

func TestIgnitionHoldsTheTokenBeforeTheJoinAlone(t *testing.T) {
	in := ignited(t, "flatcar")
	with, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Join = nil
	without, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(with.UserData), "/etc/kubernetes/bootstrap-kubeconfig") || strings.Contains(string(without.UserData), "/etc/kubernetes/bootstrap-kubeconfig") {
		t.Error("the token's file must be in the user data before the join, and in none after it")
	}
}
