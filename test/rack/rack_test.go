package rack_test

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/metal3-io/baremetal-operator/pkg/hardwareutils/bmc"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack"
)

// TestTheRackIsNoMirror keeps the simulation from sharing code with what it tests.
func TestTheRackIsNoMirror(t *testing.T) {
	const module = "github.com/ingot-dev/ingot/"
	allowed := []string{"test/rack", "test/bmc", "controllers/hardware", "api/"}
	notAllowed := []string{"controllers/hardware/redfish", "controllers/hardware/direct", "controllers/hardware/netboot", "controllers/hardware/ironic"}
	seen := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imported := range file.Imports {
			name, err := strconv.Unquote(imported.Path.Value)
			if err != nil {
				return err
			}
			ours, isOurs := strings.CutPrefix(name, module)
			if !isOurs {
				continue
			}
			seen++
			if !hasAnyPrefix(ours, allowed) || hasAnyPrefix(ours, notAllowed) {
				t.Errorf("%s imports %s", path, ours)
			}
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Errorf("%d imports looked at: %v", seen, err)
	}
}

func hasAnyPrefix(text string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

func TestManifestsAreWhatAnOperatorWouldWrite(t *testing.T) {
	r := newRig(t, 2, nil)
	text, err := r.rack.Manifests("metal")
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(bytes.TrimPrefix(text, []byte("---\n")), []byte("\n---\n"))
	if len(documents) != 4 {
		t.Fatalf("%d documents", len(documents))
	}
	var host metal3.BareMetalHost
	if err := yaml.UnmarshalStrict(documents[1], &host); err != nil {
		t.Fatal(err)
	}
	s := r.rack.Servers()[0]
	access, err := bmc.NewAccessDetails(host.Spec.BMC.Address, false)
	if err != nil {
		t.Fatal(err)
	}
	if info := access.DriverInfo(bmc.Credentials{}); info["redfish_address"] != s.BMCAddress() || info["redfish_system_id"] != s.SystemPath() {
		t.Errorf("%s is parsed as %v", host.Spec.BMC.Address, info)
	}
	if host.Labels["gpu-model"] != "h100" || host.Labels["gpu-count"] != "8" || host.Labels["rack"] != "rack-1" || host.Spec.BootMACAddress != s.BootMAC() {
		t.Errorf("labels %v, MAC %s", host.Labels, host.Spec.BootMACAddress)
	}
}

func TestEveryProfileMakesAServer(t *testing.T) {
	for _, name := range []string{"hgx-h100", "hgx-h200", "hgx-a100", "no-gpu"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, func(options *rack.Options) { options.Profile = name })
			inventory, err := r.bmc(r.rack.Servers()[0]).Inventory(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			gpus := 0
			for _, device := range inventory.PCIDevices {
				if device.VendorID == "10de" && strings.HasPrefix(device.Class, "0302") {
					gpus++
				}
			}
			if want := map[bool]int{false: 8}[name == "no-gpu"]; gpus != want {
				t.Errorf("%d GPUs of %d devices", gpus, len(inventory.PCIDevices))
			}
			if inventory.CPUThreads == 0 || inventory.MemoryBytes == 0 || len(inventory.Disks) != 1 || len(inventory.NICs) != 2 {
				t.Errorf("%+v", inventory)
			}
		})
	}
	if _, err := rack.ProfileNamed("hgx-z100"); err == nil || !strings.Contains(err.Error(), "hgx-h100") {
		t.Errorf("error %v", err)
	}
}

func TestNothingIsLeftOfAStoppedRack(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("rack", func(t *testing.T) {
		r := newRig(t, 3, nil)
		for _, s := range r.rack.Servers() {
			if err := r.bmc(s).SetPower(t.Context(), hardware.TurnOn); err != nil {
				t.Fatal(err)
			}
		}
		s := r.rack.Servers()[0]
		s.SetFaults(rack.Faults{})
		if status := r.install(s, drive("left", "#cloud-config\n")); status.State != hardware.AttemptSucceeded {
			t.Fatalf("%+v", status)
		}
	})
	eventually(t, "the goroutines have ended", func() error {
		if now := runtime.NumGoroutine(); now > before {
			stacks := make([]byte, 1<<20)
			return fmt.Errorf("%d goroutines before, %d now:\n%s", before, now, stacks[:runtime.Stack(stacks, true)])
		}
		return nil
	})
}
