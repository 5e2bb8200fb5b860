package redfish_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

var (
	gpu = hardware.PCIDevice{VendorID: "10de", DeviceID: "2330", Class: "030200", Model: "H100 SXM5"}
	nic = hardware.PCIDevice{VendorID: "15b3", DeviceID: "1021", Class: "020000", Model: "ConnectX-7"}
)

func reportedInventory() hardware.Inventory {
	return hardware.Inventory{
		Manufacturer: "Example", Model: "GX-8", SerialNumber: "SN0001", BIOSVersion: "2.4.1", BMCVersion: "1.7.0", Architecture: "amd64",
		CPUModel: "Example CPU 9000", CPUThreads: 224, MemoryBytes: 128 << 30,
		NICs: []hardware.NIC{
			{Name: "NIC.1", MAC: "52:54:00:aa:00:01", SpeedMbps: 25000, Up: true},
			{Name: "NIC.0", MAC: "52:54:00:aa:00:02", SpeedMbps: 25000, Up: true},
		},
		Disks: []hardware.Disk{
			{Model: "NVMe 9", SerialNumber: "DRIVE0", WWN: "eui.0025385b71b00000", SizeBytes: 3840755982336},
			{Model: "NVMe 9", SerialNumber: "DRIVE1", WWN: "eui.0025385b71b00001", SizeBytes: 3840755982336},
		},
		PCIDevices: listed("chassis of the system", gpu, gpu, nic),
	}
}

// listed returns the devices as those of one list of the BMC.
func listed(list string, devices ...hardware.PCIDevice) []hardware.PCIDevice {
	for i := range devices {
		devices[i].List = list
	}
	return devices
}

func TestTheInventoryHoldsWhatTheBMCReports(t *testing.T) {
	for inSystem, list := range map[bool]string{false: "chassis of the system", true: "system"} {
		f := start(t, bmc.Personality{SystemListsDevices: inSystem})
		got, err := f.bmc.Inventory(t.Context())
		must(t, err)
		want := reportedInventory()
		want.PCIDevices = listed(list, want.PCIDevices...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("inventory (-expected +seen):\n%s", diff)
		}
	}
}

func TestGPUsInHGXChassisAreCounted(t *testing.T) {
	f := start(t, bmc.Personality{HGXBaseboard: true})
	got, err := f.bmc.Inventory(t.Context())
	must(t, err)
	want := append(listed("chassis of the system", nic), listed("other chassis", gpu, gpu)...)
	if diff := cmp.Diff(want, got.PCIDevices); diff != "" {
		t.Errorf("PCI devices (-expected +seen):\n%s", diff)
	}
}

func TestResourcesThatDoNotExistLeaveMembersEmpty(t *testing.T) {
	want := reportedInventory()
	want.NICs, want.Disks, want.PCIDevices = nil, nil, nil
	for _, status := range []int{http.StatusNotFound, http.StatusGone, http.StatusMethodNotAllowed, http.StatusNotImplemented} {
		f := start(t, bmc.Personality{})
		f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			isMissing := slices.ContainsFunc([]string{"/EthernetInterfaces", "/Storage", "/Chassis"}, func(part string) bool { return strings.Contains(r.URL.Path, part) })
			if isMissing {
				w.WriteHeader(status)
			}
			return isMissing
		})
		got, err := f.bmc.Inventory(t.Context())
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d: inventory (-expected +seen):\n%s", status, diff)
		}
	}
}

// TestAnInventoryIsWholeOrItFails lets each resource in turn fail as a BMC that is busy, broken, or slow.
func TestAnInventoryIsWholeOrItFails(t *testing.T) {
	f := start(t, bmc.Personality{HGXBaseboard: true})
	f.SetPower(hardware.PowerOn)
	_, err := f.bmc.Inventory(t.Context())
	must(t, err)
	var read []string
	for _, request := range f.Requests() {
		if path, isGet := strings.CutPrefix(request, "GET "); isGet && path != "/redfish/v1/" {
			read = append(read, path)
		}
	}
	if len(read) < 20 {
		t.Fatalf("an inventory takes %d requests: %v", len(read), read)
	}
	for status, kind := range map[int]hardware.Kind{
		503: hardware.Busy, 429: hardware.Busy, 500: hardware.Unreachable, 502: hardware.Unreachable, 0: hardware.Unreachable, 403: hardware.Unauthorized, 200: hardware.Invalid,
	} {
		for _, path := range read {
			f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method != http.MethodGet || r.URL.Path != path:
					return false
				case status == 0:
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(status)
				return true
			})
			got, err := f.bmc.Inventory(t.Context())
			if hardware.KindOf(err) != kind {
				t.Errorf("%s answers %d: %v, expected %s", path, status, err, kind)
			}
			if diff := cmp.Diff(hardware.Inventory{}, got); diff != "" {
				t.Errorf("inventory beside an error:\n%s", diff)
			}
		}
	}
}

func TestABMCThatStopsRespondingYieldsNoInventory(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/Storage") {
			panic(http.ErrAbortHandler)
		}
		return false
	})
	got, err := f.bmc.Inventory(t.Context())
	expect(t, err, hardware.Unreachable)
	if diff := cmp.Diff(hardware.Inventory{}, got); diff != "" {
		t.Errorf("inventory beside an error:\n%s", diff)
	}
}

func TestASessionLostWhileTheInventoryIsReadIsOpenedAgain(t *testing.T) {
	f := start(t, bmc.Personality{})
	lost := false
	f.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if !lost && strings.Contains(r.URL.Path, "/Storage") {
			lost = true
			f.EndSessions()
		}
		return false
	})
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
	got, err := f.bmc.Inventory(t.Context())
	must(t, err)
	if diff := cmp.Diff(reportedInventory(), got); diff != "" {
		t.Errorf("inventory (-expected +seen):\n%s", diff)
	}
}

// TestZeroInASummaryOrADriveIsUnknown has a BMC that reports 0 where it knows nothing, as some do before the first boot.
func TestZeroInASummaryOrADriveIsUnknown(t *testing.T) {
	f := start(t, bmc.Personality{})
	raw, found := f.Document(bmc.PathSystem)
	if !found {
		t.Fatal("the BMC has no system")
	}
	var system map[string]any
	must(t, json.Unmarshal(raw, &system))
	system["MemorySummary"] = map[string]any{"TotalSystemMemoryGiB": 0}
	system["Memory"] = map[string]any{"@odata.id": "/redfish/v1/memory"}
	system["SimpleStorage"] = map[string]any{"@odata.id": "/redfish/v1/simple"}
	edited, err := json.Marshal(system)
	must(t, err)
	documents := map[string]string{
		bmc.PathSystem:         string(edited),
		"/redfish/v1/memory":   `{"Members": [{"@odata.id": "/redfish/v1/memory/0"}, {"@odata.id": "/redfish/v1/memory/1"}]}`,
		"/redfish/v1/memory/0": `{"Id": "0", "CapacityMiB": 1024}`,
		"/redfish/v1/memory/1": `{"Id": "1", "CapacityMiB": 0}`,
		"/redfish/v1/simple":   `{"Members": [{"@odata.id": "/redfish/v1/simple/0"}]}`,
		"/redfish/v1/simple/0": `{"Id": "0", "Devices": [{"Name": "empty", "CapacityBytes": 0}, {"Name": "disk", "Model": "SATA 1", "CapacityBytes": 5000000}]}`,
	}
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		document, found := documents[r.URL.Path]
		if !found && strings.Contains(r.URL.Path, "/Drives/") {
			document, found = `{"Id": "0", "CapacityBytes": 0}`, true
		}
		if found {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, document)
		}
		return found
	})
	got, err := f.bmc.Inventory(t.Context())
	must(t, err)
	if got.MemoryBytes != 1<<30 {
		t.Errorf("memory of %d bytes, expected that of the modules", got.MemoryBytes)
	}
	if diff := cmp.Diff([]hardware.Disk{{Model: "SATA 1", SizeBytes: 5000000}}, got.Disks); diff != "" {
		t.Errorf("disks (-expected +seen):\n%s", diff)
	}
	documents["/redfish/v1/memory/1"] = `{"Id": "1", "CapacityMiB": null}`
	got, err = f.bmc.Inventory(t.Context())
	must(t, err)
	if got.MemoryBytes != 0 {
		t.Errorf("memory of %d bytes, and the size of one module is unknown", got.MemoryBytes)
	}
}
