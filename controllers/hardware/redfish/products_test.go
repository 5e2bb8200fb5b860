package redfish_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
	"github.com/ingot-dev/ingot/test/bmc"
)

// hardwareSummary is what a test expects of a product's inventory.
type hardwareSummary struct {
	// GPUs are counts and models; "none" means that there is none for certain, and empty that nobody can tell.
	GPUs      string
	CPU       string
	Threads   int
	MemoryGiB int64
	NICs      int
	// Disks are counts, models and GB.
	Disks string
}

func summaryOf(i hardware.Inventory) hardwareSummary {
	kept := inventory.HostInventory(i, nil)
	s := hardwareSummary{CPU: i.CPUModel, Threads: i.CPUThreads, MemoryGiB: i.MemoryBytes >> 30, NICs: len(i.NICs)}
	var gpus, disks []string
	for _, g := range kept.GPUs {
		gpus = append(gpus, fmt.Sprintf("%d %s", g.Count, g.Model))
	}
	if kept.IsGPUCountKnown() && len(gpus) == 0 {
		gpus = append(gpus, "none")
	}
	counts := map[string]int{}
	var order []string
	for _, d := range i.Disks {
		name := fmt.Sprintf("%s %d GB", d.Model, d.SizeBytes/1e9)
		if counts[name]++; counts[name] == 1 {
			order = append(order, name)
		}
	}
	for _, name := range order {
		disks = append(disks, fmt.Sprintf("%d x %s", counts[name], name))
	}
	s.GPUs, s.Disks = strings.Join(gpus, ", "), strings.Join(disks, ", ")
	return s
}

func TestTheInventoryOfEveryProductIsRead(t *testing.T) {
	const generic = "2 x NVMe 9 3840 GB"
	want := map[string]hardwareSummary{
		"dgx-h100": {"8 H100-SXM5-80GB", "Intel(R) Xeon(R) Platinum 8480CL", 224, 2048, 2,
			"2 x SAMSUNG MZ1L21T9HCLS 1920 GB, 8 x KIOXIA KCM6DRUL3T84 3840 GB"},
		"supermicro-x13": {"8 H100-SXM5-80GB", "Intel(R) Xeon(R) Platinum 8462Y+", 128, 2048, 2, "4 x SAMSUNG MZQL27T6HBLA-00A07 7681 GB"},
		"supermicro-x10": {"", "Intel(R) Xeon(R) CPU E5-2640 v4 @ 2.40GHz", 224, 128, 2, ""},
		"dell-r750a":     {"1 H100-PCIe-80GB", "Example CPU 9000", 224, 128, 2, "3 x Dell Express Flash NVMe P4510 1TB SFF 1000 GB, 1 x BOSS-S2 480 GB"},
		"dell-r750b":     {"none", "Example CPU 9000", 224, 128, 2, "1 x PM1735 1600 GB"},
		"dell-m640":      {"", "", 0, 0, 2, ""},
		"hpe-bl460c":     {"none", "Example CPU 9000", 224, 128, 2, "2 x EG2400JEHMC 2400 GB"},
		"hpe-dl325":      {"none", "Example CPU 9000", 224, 128, 2, "2 x EG2400JEHMC 2400 GB"},
		"hpe-dl385":      {"2 A100-PCIe-80GB", "Example CPU 9000", 224, 128, 2, "16 x VO003840KWVTT 3840 GB, 2 x VK000480GXNGA 480 GB"},
		"hpe-dl380a":     {"2 H100-NVL-94GB", "Example CPU 9000", 224, 128, 2, "2 x MZWLO1T9HCJR 1920 GB"},
		"qct-d42a":       {"", "", 0, 128, 2, generic},
		"sushy-tools":    {"", "", 0, 0, 2, generic},
		// The model of GPUs without a name is not known, and that they are four is.
		"nvidia-gb200": {"4 ", "Grace A02P", 144, 960, 2, generic},
		"hpe-devices":  {"2 H100-NVL-94GB", "Example CPU 9000", 224, 128, 2, generic},
		"oem-gpus":     {"8 H100-SXM5-80GB", "Example CPU 9000", 224, 128, 2, generic},
	}
	names, err := bmc.Products()
	must(t, err)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			product, err := bmc.ProductNamed(name)
			must(t, err)
			f := start(t, product)
			f.SetPower(hardware.PowerOn)
			got, err := f.bmc.Inventory(t.Context())
			must(t, err)
			if diff := cmp.Diff(want[name], summaryOf(got)); diff != "" {
				t.Errorf("(-expected +seen):\n%s", diff)
			}
		})
	}
	if len(names) != len(want) {
		t.Errorf("%d products, and expectations of %d", len(names), len(want))
	}
}

// TestAnArrayIsADiskInPlaceOfItsDrives covers what an erase expects: the agent sees the array and the drives that are no part of one.
func TestAnArrayIsADiskInPlaceOfItsDrives(t *testing.T) {
	product, err := bmc.ProductNamed("dell-r750a")
	must(t, err)
	f := start(t, product)
	bay := "/redfish/v1/Systems/1/Storage/CPU.1/Drives/Disk.Bay.0"
	f.withMembers(t, bay, map[string]any{"Links": map[string]any{"Volumes": []any{
		map[string]any{"@odata.id": "/redfish/v1/Systems/1/Storage/CPU.1/Volumes/Disk.Bay.0"},
		map[string]any{"@odata.id": "/redfish/v1/Systems/1/Storage/CPU.1/Volumes/missing"},
	}}})
	got, err := f.bmc.Inventory(t.Context())
	must(t, err)
	var names []string
	for _, d := range got.Disks {
		names = append(names, d.SerialNumber+d.WWN)
	}
	slices.Sort(names)
	if want := []string{"600224800b1e5c00", "PHLJ90", "PHLJ91", "PHLJ92"}; !slices.Equal(names, want) {
		t.Errorf("disks %v, expected %v", names, want)
	}
}

func TestABigInventoryTakesFewRequests(t *testing.T) {
	for name, c := range map[string]struct {
		form   bmc.ExpandForm
		none   bool
		budget int
	}{
		"without $expand":                     {none: true, budget: 199},
		"with an $expand that leaves out ids": {form: bmc.ExpandWithoutIDs, budget: 199},
		"with an $expand after an error":      {form: bmc.ExpandAfterError, budget: 199},
		"with an $expand that is refused":     {form: bmc.ExpandRefused, budget: 199},
		"with $expand":                        {budget: 99},
	} {
		t.Run(name, func(t *testing.T) {
			product, err := bmc.ProductNamed("dgx-h100")
			must(t, err)
			resources := *product.Resources
			resources.Expand = &bmc.ExpandRules{NoLinks: true, Levels: true, Form: c.form}
			if c.none {
				resources.Expand = nil
			}
			product.Resources = &resources
			f := start(t, product)
			f.SetPower(hardware.PowerOn)
			got, err := f.bmc.Inventory(t.Context())
			must(t, err)
			if gpus := summaryOf(got).GPUs; gpus != "8 H100-SXM5-80GB" {
				t.Errorf("GPUs: %q", gpus)
			}
			requests := f.Requests()
			if len(requests) > c.budget {
				t.Errorf("%d requests, expected at most %d", len(requests), c.budget)
			}
			if isUsable := c.form == "" && !c.none; !isUsable && len(requests) < 100 {
				t.Errorf("%d requests: an answer to $expand was used that lacks what is needed", len(requests))
			}
			t.Logf("%d requests", len(requests))
		})
	}
}

// dgx starts a DGX H100, whose baseboard answers 503 while it has no power.
func dgx(t *testing.T, power hardware.PowerState) *fixture {
	product, err := bmc.ProductNamed("dgx-h100")
	must(t, err)
	f := start(t, product)
	f.SetPower(power)
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		isSilent := strings.Contains(r.URL.Path, "/HGX_")
		if isSilent {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":{"code":"Ami.1.0.HMCCommuicationFailed","message":"HMC","@Message.ExtendedInfo":[{"MessageId":"Ami.1.0.HMCCommuicationFailed"}]}}`))
		}
		return isSilent
	})
	return f
}

func TestABaseboardWithoutPowerIsUnknownAndOneThatIsBusyFails(t *testing.T) {
	_, err := dgx(t, hardware.PowerOn).bmc.Inventory(t.Context())
	expect(t, err, hardware.Busy)

	off := dgx(t, hardware.PowerOff)
	got, err := off.bmc.Inventory(t.Context())
	must(t, err)
	if gpus := summaryOf(got).GPUs; gpus != "8 H100-SXM5-80GB" {
		t.Errorf("the functions of the host list all GPUs, and the inventory has %q", gpus)
	}
	off = dgx(t, hardware.PowerOff)
	off.Remove("/redfish/v1/Chassis/1/PCIeDevices")
	got, err = off.bmc.Inventory(t.Context())
	must(t, err)
	if s := summaryOf(got); s.GPUs != "" || s.MemoryGiB != 2048 || s.NICs != 2 {
		t.Errorf("a baseboard that does not answer leaves the GPUs open; seen %+v", s)
	}
}

func TestAnotherServersBaseboardIsNotThisServers(t *testing.T) {
	product, err := bmc.ProductNamed("dell-r750b")
	must(t, err)
	resources := *product.Resources
	resources.Add = append(slices.Clone(resources.Add),
		bmc.Resource{At: "/redfish/v1/Systems/2/Processors/GPU{n}", Count: 4, ListedBy: []string{"/redfish/v1/Systems/2/Processors#Members"}, Set: map[string]any{
			"ProcessorType": "GPU", "Model": "NVIDIA H100 PCIe", "Manufacturer": "NVIDIA"}},
		bmc.Resource{At: "/redfish/v1/Systems/2", Set: map[string]any{"Processors": map[string]any{"@odata.id": "/redfish/v1/Systems/2/Processors"},
			"Links": map[string]any{"Chassis": []any{map[string]any{"@odata.id": "/redfish/v1/Chassis/2"}}}}})
	product.SecondSystem, product.Resources = true, &resources
	f := start(t, product)
	e := f.Endpoint()
	e.SystemPath = bmc.PathSystem
	got, err := f.open(t, e).Inventory(t.Context())
	must(t, err)
	if gpus := summaryOf(got).GPUs; gpus != "none" {
		t.Errorf("GPUs of another server were counted: %q", gpus)
	}
}

func TestPagesThatLeadBackAndLinksThatRepeatAreReadOnce(t *testing.T) {
	f := start(t, bmc.Personality{})
	interfaces := bmc.PathSystem + "/EthernetInterfaces"
	raw, found := f.Document(interfaces)
	if !found {
		t.Fatal("no interfaces")
	}
	var page map[string]any
	must(t, json.Unmarshal(raw, &page))
	members, _ := page["Members"].([]any)
	f.withMembers(t, interfaces, map[string]any{"Members": append(slices.Clone(members), members...), "Members@odata.nextLink": interfaces})
	f.Requests()
	got, err := f.bmc.Inventory(t.Context())
	must(t, err)
	if len(got.NICs) != 2 {
		t.Errorf("%d NICs", len(got.NICs))
	}
	if n := count(f.Requests(), "GET "+interfaces); n != 3 {
		t.Errorf("%d requests for a collection and its two members", n)
	}
}

// TestAMistypedMemberCostsNeitherDriveNorMemory has the mistakes of products, and some more.
func TestAMistypedMemberCostsNeitherDriveNorMemory(t *testing.T) {
	drive := bmc.PathSystem + "/Storage/NVMe/Drives/0"
	for name, c := range map[string]struct {
		path    string
		members map[string]any
	}{
		"a location that is a list":          {drive, map[string]any{"Location": []any{}}},
		"a location that is a text":          {drive, map[string]any{"Location": "1I:1:1"}},
		"a size with a fraction":             {drive, map[string]any{"CapacityBytes": json.RawMessage("3840755982336.0")}},
		"a size that is a text":              {drive, map[string]any{"CapacityBytes": "3840755982336"}},
		"identifiers that are one":           {drive, map[string]any{"Identifiers": map[string]any{"DurableName": "x"}, "SerialNumber": "DRIVE0"}},
		"a temperature that is a text":       {drive, map[string]any{"Status": "OK", "Oem": 7, "CapableSpeedGbs": "fast"}},
		"a summary of memory that is a list": {bmc.PathSystem, map[string]any{"MemorySummary": []any{}}},
		"memory that is a text":              {bmc.PathSystem, map[string]any{"MemorySummary": map[string]any{"TotalSystemMemoryGiB": "128"}}},
		"threads that are a text":            {bmc.PathSystem + "/Processors/CPU0", map[string]any{"TotalThreads": "112", "Socket": 1}},
		"a speed that is a text":             {bmc.PathSystem + "/EthernetInterfaces/NIC.0", map[string]any{"SpeedMbps": "25000", "IPv4Addresses": "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{})
			f.withMembers(t, c.path, c.members)
			got, err := f.bmc.Inventory(t.Context())
			must(t, err)
			want := hardwareSummary{"2 H100-SXM5-80GB", "Example CPU 9000", 224, 128, 2, "2 x NVMe 9 3840 GB"}
			if diff := cmp.Diff(want, summaryOf(got)); diff != "" {
				t.Errorf("(-expected +seen):\n%s", diff)
			}
		})
	}
}

// TestABMCThatFreezesUnderManyRequestsSurvivesAnInventory has the biggest product behind a BMC that answers 250 requests a minute.
func TestABMCThatFreezesUnderManyRequestsSurvivesAnInventory(t *testing.T) {
	product, err := bmc.ProductNamed("dgx-h100")
	must(t, err)
	product.Wire = personalityNamed(t, "freezes").Wire
	f := start(t, product)
	f.SetClock(f.clock.Now) // which stands still
	f.SetPower(hardware.PowerOn)
	got, err := f.bmc.Inventory(t.Context())
	must(t, err)
	if gpus := summaryOf(got).GPUs; gpus != "8 H100-SXM5-80GB" {
		t.Errorf("GPUs: %q", gpus)
	}
	f.Requests()
	for range 20 {
		_, err := f.bmc.PowerState(t.Context())
		must(t, err)
	}
	if requests := f.Requests(); len(requests) != 20 {
		t.Errorf("20 reads of the power took the requests %q", requests)
	}
}

// TestNICsAreKnownByTheirAddressesWhateverTheirIDs has an iLO 6, whose ids are others after each boot.
func TestNICsAreKnownByTheirAddressesWhateverTheirIDs(t *testing.T) {
	f := start(t, personalityNamed(t, "hpe-dl380a"))
	var ids [][]string
	var first []hardware.NIC
	for range 3 {
		must(t, f.bmc.SetPower(t.Context(), hardware.TurnOn))
		got, err := f.bmc.Inventory(t.Context())
		must(t, err)
		var names []string
		for i := range got.NICs {
			names, got.NICs[i].Name = append(names, got.NICs[i].Name), ""
		}
		if ids = append(ids, names); first == nil {
			first = got.NICs
		}
		if diff := cmp.Diff(first, got.NICs); diff != "" || len(got.NICs) != 2 {
			t.Errorf("NICs (-first +now):\n%s", diff)
		}
		must(t, f.bmc.SetPower(t.Context(), hardware.TurnOff))
	}
	if slices.Equal(ids[0], ids[1]) || slices.Equal(ids[1], ids[2]) {
		t.Errorf("ids %q: the simulated BMC kept them", ids)
	}
}
