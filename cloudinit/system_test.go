package cloudinit

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestCloudInitIsRefusedWhereItIsNot(t *testing.T) {
	for _, tt := range []struct {
		kind v1alpha1.UserDataKind
		os   string
		well bool
	}{
		{v1alpha1.UserDataCloudInit, "flatcar", false}, {"", "flatcar", false}, {"", "rhcos", false}, {"", "scos", false},
		{v1alpha1.UserDataIgnition, "flatcar", true}, {v1alpha1.UserDataCloudInit, "ubuntu", true}, {"", "fedora", true}, {"", "", true},
	} {
		err := Check(Input{Kind: tt.kind, OS: tt.os})
		var unsupported *Unsupported
		if tt.well && err != nil || !tt.well && (!errors.As(err, &unsupported) || !strings.Contains(err.Error(), "userData: Ignition")) {
			t.Errorf("%s on %s: %v", tt.kind, tt.os, err)
		}
	}
}

func TestPackagesAreWrittenAsThePackageManagerReadsThem(t *testing.T) {
	packages := []string{"nvidia-driver=3:570.172.08-1.el9", "nvidia-fabricmanager-570.172.08", "lldpd"}
	for os, want := range map[string]string{
		"ubuntu": "nvidia-driver=3:570.172.08-1.el9 nvidia-fabricmanager-570.172.08 lldpd",
		"rocky":  "nvidia-driver-3:570.172.08-1.el9 nvidia-fabricmanager-570.172.08 lldpd",
		"rhel":   "nvidia-driver-3:570.172.08-1.el9 nvidia-fabricmanager-570.172.08 lldpd",
	} {
		in := Input{OS: os, Plan: v1alpha1.NodePlan{Packages: packages}, Machine: MachineInput{Name: "machine-1", UID: "1", Revision: "r", Attempt: 1}}
		documents, err := Render(in)
		if err != nil {
			t.Fatal(err)
		}
		document := struct {
			Packages []string `json:"packages"`
		}{}
		if err := yaml.Unmarshal(documents.UserData, &document); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(document.Packages, " "); got != want {
			t.Errorf("%s: %s, want %s", os, got, want)
		}
	}
}
