package redfish_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/bmc"
)

const (
	boardPath = "/redfish/v1/Systems/HGX_Baseboard_0"
	oemPath   = bmc.PathSystem + "/Oem/Example"
)

// withPlaces starts a server whose only PCI device in its chassis is a NIC, with further resources.
func withPlaces(t *testing.T, add ...bmc.Resource) *fixture {
	t.Helper()
	nic := "/redfish/v1/Chassis/1/PCIeDevices/nic"
	base := []bmc.Resource{
		{At: nic, ListedBy: []string{"/redfish/v1/Chassis/1/PCIeDevices#Members"}, Set: map[string]any{"PCIeFunctions": link(nic + "/PCIeFunctions")}},
		{At: nic + "/PCIeFunctions/0", ListedBy: []string{nic + "/PCIeFunctions#Members"}, Set: map[string]any{"VendorId": "0x15b3", "DeviceId": "0x1021", "ClassCode": "0x020000"}},
	}
	f := start(t, bmc.Personality{Resources: &bmc.Resources{Remove: []string{"/redfish/v1/Chassis/1/PCIeDevices"}, Add: append(base, add...)}})
	f.SetPower(hardware.PowerOn)
	return f
}

func link(to string) map[string]any { return map[string]any{"@odata.id": to} }

// oem has the server's system lead to a tree of the vendor's.
func oem(tree any) bmc.Resource {
	return bmc.Resource{At: bmc.PathSystem, Set: map[string]any{"Oem": map[string]any{"Example": tree}}}
}

// members are resources in a collection.
func members(collection string, count int, set map[string]any) bmc.Resource {
	return bmc.Resource{At: collection + "/{n}", Count: count, ListedBy: []string{collection + "#Members"}, Set: set}
}

// board adds a board of GPUs with processors.
func board(processors ...bmc.Resource) []bmc.Resource {
	return append([]bmc.Resource{{At: boardPath, ListedBy: []string{"/redfish/v1/Systems#Members"}, Set: map[string]any{"SystemType": "Physical", "Processors": link(boardPath + "/Processors")}}}, processors...)
}

func TestGPUsAreCountedOrUnknownWhereverTheyAre(t *testing.T) {
	const unknown, none, h100 = "", "none", "H100-SXM5-80GB"
	onBoard, devices, gpus := boardPath+"/Processors", "/redfish/v1/Chassis/1/Devices", oemPath+"/GPUs"
	named := map[string]any{"Model": "NVIDIA H100 80GB HBM3"}
	for name, c := range map[string]struct {
		add  []bmc.Resource
		want string
	}{
		"there is none": {nil, none},

		"on a board, typed, without names":       {board(members(onBoard, 8, map[string]any{"ProcessorType": "GPU"})), "8 "},
		"on a board, with names that say N/A":    {board(members(onBoard, 8, map[string]any{"ProcessorType": "GPU", "Manufacturer": "N/A", "Model": "Unknown"})), "8 "},
		"on a board, without type and names":     {board(members(onBoard, 8, nil)), unknown},
		"on a board, null type":                  {board(members(onBoard, 8, map[string]any{"ProcessorType": nil, "Manufacturer": nil, "Model": nil})), unknown},
		"on a board, a type in small letters":    {board(members(onBoard, 8, map[string]any{"ProcessorType": "gpu", "Model": "NVIDIA H100 80GB HBM3"})), "8 " + h100},
		"on a board, named by their ids alone":   {board(bmc.Resource{At: onBoard + "/GPU_SXM_{n}", Count: 8, ListedBy: []string{onBoard + "#Members"}}), "8 "},
		"on a board with FPGAs and switches":     {board(members(onBoard, 2, map[string]any{"ProcessorType": "FPGA"}), bmc.Resource{At: onBoard + "/NVSwitch_{n}", Count: 4, ListedBy: []string{onBoard + "#Members"}}), none},
		"on a board that lists four of eight":    {board(members(onBoard, 4, map[string]any{"ProcessorType": "GPU"}), bmc.Resource{At: onBoard, Set: map[string]any{"Members@odata.count": "8"}}), unknown},
		"on a board that counts null":            {board(members(onBoard, 8, map[string]any{"ProcessorType": "GPU"}), bmc.Resource{At: onBoard, Set: map[string]any{"Members@odata.count": json.RawMessage("null")}}), "8 "},
		"on a board that counts in words":        {board(members(onBoard, 8, map[string]any{"ProcessorType": "GPU"}), bmc.Resource{At: onBoard, Set: map[string]any{"Members@odata.count": "eight"}}), "8 "},
		"on a board of another name":             {[]bmc.Resource{{At: "/redfish/v1/Systems/UBB", ListedBy: []string{"/redfish/v1/Systems#Members"}, Set: map[string]any{"Manufacturer": "AMD", "Processors": link("/redfish/v1/Systems/UBB/Processors")}}, members("/redfish/v1/Systems/UBB/Processors", 8, map[string]any{"ProcessorType": "Accelerator", "Model": "AMD Instinct MI300X"})}, "8 MI300X-192GB"},
		"among the server's processors, no type": {[]bmc.Resource{{At: bmc.PathSystem + "/Processors/GPU{n}", Count: 2, ListedBy: []string{bmc.PathSystem + "/Processors#Members"}, Set: map[string]any{"TotalThreads": 1000}}}, unknown},
		"an accelerator of a maker of GPUs":      {[]bmc.Resource{{At: bmc.PathSystem + "/Processors/ACC{n}", Count: 2, ListedBy: []string{bmc.PathSystem + "/Processors#Members"}, Set: map[string]any{"ProcessorType": "Accelerator", "Manufacturer": "NVIDIA"}}}, unknown},
		"an accelerator of another maker":        {[]bmc.Resource{{At: bmc.PathSystem + "/Processors/ACC{n}", Count: 2, ListedBy: []string{bmc.PathSystem + "/Processors#Members"}, Set: map[string]any{"ProcessorType": "Accelerator", "Manufacturer": "Intel", "Model": "QAT"}}}, none},
		"a chassis that says no more":            {[]bmc.Resource{{At: "/redfish/v1/Chassis/GPU_Board", ListedBy: []string{"/redfish/v1/Chassis#Members"}}}, unknown},
		"a collection of devices that is short":  {[]bmc.Resource{{At: "/redfish/v1/Chassis/1/PCIeDevices", Set: map[string]any{"Members@odata.count": 9}}}, unknown},

		"in a collection of the system's":      {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"PCIeDevices": link(bmc.PathSystem + "/PCIeDevices")}}, members(bmc.PathSystem+"/PCIeDevices", 2, map[string]any{"Manufacturer": "NVIDIA", "Model": "H100 80GB HBM3"})}, "2 " + h100},
		"in a list of the chassis'":            {[]bmc.Resource{{At: "/redfish/v1/Chassis/1", Set: map[string]any{"PCIeDevices": []any{link("/redfish/v1/Chassis/1/PCIeDevices/nic"), link("/redfish/v1/gpu")}}}, {At: "/redfish/v1/gpu", Set: map[string]any{"Manufacturer": "NVIDIA", "Model": "H100 80GB HBM3"}}}, "1 " + h100},
		"in Chassis/Devices":                   {[]bmc.Resource{{At: "/redfish/v1/Chassis/1", Set: map[string]any{"Devices": link(devices)}}, members(devices, 2, map[string]any{"DeviceType": "GPU", "Name": "NVIDIA H100 NVL"})}, "2 H100-NVL-94GB"},
		"in Chassis/Devices, of unknown types": {[]bmc.Resource{{At: "/redfish/v1/Chassis/1", Set: map[string]any{"Devices": link(devices)}}, members(devices, 2, map[string]any{"DeviceType": "Unknown", "Name": "NVIDIA H100 NVL"})}, "2 H100-NVL-94GB"},
		"in Chassis/Devices, without names":    {[]bmc.Resource{{At: "/redfish/v1/Chassis/1", Set: map[string]any{"Devices": link(devices)}}, members(devices, 2, map[string]any{"DeviceType": "GPU"})}, unknown},
		"in Chassis/Devices, no GPU":           {[]bmc.Resource{{At: "/redfish/v1/Chassis/1", Set: map[string]any{"Devices": link(devices)}}, members(devices, 2, map[string]any{"DeviceType": "NIC", "Name": "NVIDIA ConnectX-7"})}, none},
		"graphics controllers":                 {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"GraphicsControllers": link(bmc.PathSystem + "/GraphicsControllers")}}, members(bmc.PathSystem+"/GraphicsControllers", 2, map[string]any{"Manufacturer": "NVIDIA", "Model": "H100 80GB HBM3"})}, "2 " + h100},
		"the graphics of the BMC":              {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"GraphicsControllers": link(bmc.PathSystem + "/GraphicsControllers")}}, members(bmc.PathSystem+"/GraphicsControllers", 1, map[string]any{"Manufacturer": "ASPEED", "Model": "AST2600"})}, none},
		"in a vendor's tree":                   {[]bmc.Resource{oem(map[string]any{"GPUs": link(gpus)}), members(gpus, 8, named)}, "8 " + h100},
		"in a vendor's tree, some levels deep": {[]bmc.Resource{oem(map[string]any{"Links": map[string]any{"HardwareInventory": link(oemPath)}}), {At: oemPath, Set: map[string]any{"Trays": []any{map[string]any{"GPU": link(gpus)}}}}, members(gpus, 8, named)}, "8 " + h100},
		"in two trees of vendors":              {[]bmc.Resource{oem(map[string]any{"GPUs": link(gpus), "Accelerators": link(oemPath + "/Accelerators")}), members(gpus, 8, named), members(oemPath+"/Accelerators", 8, named)}, "8 " + h100},
		"in a vendor's tree of the root's":     {[]bmc.Resource{{At: "/redfish/v1", Set: map[string]any{"Oem": map[string]any{"Example": map[string]any{"GPUs": link(gpus)}}}}, members(gpus, 8, named)}, "8 " + h100},
		"in a vendor's tree, inline":           {[]bmc.Resource{oem(map[string]any{"GPUs": []any{named, named}})}, "2 " + h100},
		"in a vendor's tree, by their ids":     {[]bmc.Resource{oem(map[string]any{"GPUs": link(gpus)}), members(gpus, 2, map[string]any{"VendorId": "0x10de", "DeviceId": "0x2330"})}, "2 " + h100},
		"in a vendor's tree, nothing is said":  {[]bmc.Resource{oem(map[string]any{"GPUs": link(gpus)}), members(gpus, 8, nil)}, unknown},
		"in a vendor's tree, there are none":   {[]bmc.Resource{oem(map[string]any{"GPUs": link(gpus)}), {At: gpus, Set: map[string]any{"Members": []any{}}}}, none},
		"in a vendor's tree, all are absent":   {[]bmc.Resource{oem(map[string]any{"GPUs": link(gpus)}), members(gpus, 8, map[string]any{"Status": map[string]any{"State": "Absent"}})}, none},
		"in a vendor's tree that ends nowhere": {[]bmc.Resource{oem(map[string]any{"GPUs": link(gpus)})}, none},
		"in Dell's tree of video cards":        {[]bmc.Resource{oem(map[string]any{"DellVideoCollection": link(oemPath + "/DellVideo")}), members(oemPath+"/DellVideo", 2, map[string]any{"Manufacturer": "NVIDIA Corporation", "MarketingName": "NVIDIA H100 NVL"}), {At: oemPath + "/DellVideo/own", ListedBy: []string{oemPath + "/DellVideo#Members"}, Set: map[string]any{"Manufacturer": "Matrox Electronics Systems Ltd.", "MarketingName": "Integrated Matrox G200eW3"}}}, "2 H100-NVL-94GB"},
		"on a board, by its PCI devices":       {append(board(), bmc.Resource{At: boardPath, Set: map[string]any{"Processors": nil, "PCIeDevices": link(boardPath + "/PCIeDevices")}}, members(boardPath+"/PCIeDevices", 8, map[string]any{"Manufacturer": "NVIDIA", "Model": "H100 80GB HBM3"})), "8 " + h100},
		"a vendor's tree that leads to itself": {[]bmc.Resource{oem(map[string]any{"GPUs": link(gpus)}), {At: gpus, Set: map[string]any{"GPU": link(gpus)}}}, unknown},
		"a vendor's tree of thousands":         {[]bmc.Resource{oem(map[string]any{"Devices": link(devices)}), members(devices, 2000, map[string]any{"DeviceType": "Fan"})}, unknown},
		"what only sounds like it":             {[]bmc.Resource{oem(map[string]any{"GPUSensors": link(oemPath + "/GPUSensors"), "GPUFirmware": link(oemPath + "/x")}), members(oemPath+"/GPUSensors", 2, named)}, none},

		"a count":                   {[]bmc.Resource{oem(map[string]any{"GPUCount": 8, "GPUModel": "NVIDIA H100 80GB HBM3"})}, "8 " + h100},
		"a count that is a text":    {[]bmc.Resource{oem(map[string]any{"GpuNum": " 8 ", "GPUModel": "NVIDIA H100 80GB HBM3"})}, "8 " + h100},
		"a count of unknown GPUs":   {[]bmc.Resource{oem(map[string]any{"TotalGPUs": "8"})}, unknown},
		"a count of none":           {[]bmc.Resource{oem(map[string]any{"TotalGPUs": "0"})}, none},
		"a count that is null":      {[]bmc.Resource{oem(map[string]any{"GPUCount": json.RawMessage("null")})}, unknown},
		"a count that is no number": {[]bmc.Resource{oem(map[string]any{"AcceleratorCount": "eight"})}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			f := withPlaces(t, c.add...)
			got, err := f.bmc.Inventory(t.Context())
			must(t, err)
			s := summaryOf(got)
			if s.GPUs != c.want {
				t.Errorf("GPUs %q, expected %q; the devices are %+v", s.GPUs, c.want, got.PCIDevices)
			}
			if s.Threads != 224 || s.MemoryGiB != 128 {
				t.Errorf("%d threads and %d GiB, expected the server's own", s.Threads, s.MemoryGiB)
			}
			if requests := f.Requests(); len(requests) > 250 {
				t.Errorf("%d requests", len(requests))
			}
		})
	}
}

func TestAVendorsTreeThatCannotBeReadLeavesTheGPUsOpen(t *testing.T) {
	for _, status := range []int{400, 403, 500, 503} {
		f := withPlaces(t, oem(map[string]any{"GPUs": link(oemPath + "/GPUs")}), members(oemPath+"/GPUs", 8, nil))
		f.answer(http.MethodGet, oemPath, -1, status, "")
		got, err := f.bmc.Inventory(t.Context())
		must(t, err)
		if s := summaryOf(got); s.GPUs != "" || s.NICs != 2 {
			t.Errorf("%d: %+v", status, s)
		}
	}
}

// TestCountsAreReadOrUnknown has the counts of a server's own system in every spelling.
func TestCountsAreReadOrUnknown(t *testing.T) {
	cpu, dimm := bmc.PathSystem+"/Processors/CPU{n}", bmc.PathSystem+"/Memory/DIMM{n}"
	for name, c := range map[string]struct {
		add             []bmc.Resource
		threads, memory int
	}{
		"texts":                     {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"MemorySummary": map[string]any{"TotalSystemMemoryGiB": "256"}}}, {At: cpu, Count: 2, Set: map[string]any{"TotalThreads": "64"}}}, 128, 256},
		"fractions":                 {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"MemorySummary": map[string]any{"TotalSystemMemoryGiB": "256.0"}}}, {At: cpu, Count: 2, Set: map[string]any{"TotalThreads": 64.0}}}, 128, 256},
		"null":                      {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"MemorySummary": map[string]any{"TotalSystemMemoryGiB": nil}}}, {At: cpu, Count: 2, Set: map[string]any{"TotalThreads": nil}}}, 224, 128},
		"one thread count is null":  {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"ProcessorSummary": nil}}, {At: bmc.PathSystem + "/Processors/CPU1", Set: map[string]any{"TotalThreads": nil}}}, 0, 128},
		"with a unit":               {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"MemorySummary": map[string]any{"TotalSystemMemoryGiB": "256 GiB"}}}}, 224, 128},
		"objects":                   {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"MemorySummary": "much", "ProcessorSummary": []any{}}}, {At: cpu, Count: 2, Set: map[string]any{"TotalThreads": map[string]any{}}}}, 0, 128},
		"a module without a size":   {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"MemorySummary": nil}}, {At: dimm, Count: 1, Set: map[string]any{"CapacityMiB": nil}}}, 224, 0},
		"modules that are short":    {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"MemorySummary": nil}}, {At: bmc.PathSystem + "/Memory", Set: map[string]any{"Members@odata.count": "16"}}}, 224, 0},
		"processors that are short": {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"ProcessorSummary": nil}}, {At: bmc.PathSystem + "/Processors", Set: map[string]any{"Members@odata.count": 4}}}, 0, 128},
		"memory of a GPU":           {[]bmc.Resource{{At: bmc.PathSystem, Set: map[string]any{"MemorySummary": nil}}, {At: bmc.PathSystem + "/Memory/GPU_0_DRAM", ListedBy: []string{bmc.PathSystem + "/Memory#Members"}, Set: map[string]any{"CapacityMiB": 81920, "MemoryDeviceType": "HBM3"}}}, 224, 128},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := withPlaces(t, c.add...).bmc.Inventory(t.Context())
			must(t, err)
			if s := summaryOf(got); s.Threads != c.threads || s.MemoryGiB != int64(c.memory) {
				t.Errorf("%d threads and %d GiB, expected %d and %d", s.Threads, s.MemoryGiB, c.threads, c.memory)
			}
		})
	}
}

func TestWhichSystemIsTheServerIsSaid(t *testing.T) {
	extra := func(at string, set map[string]any) bmc.Resource {
		set["Boot"], set["PowerState"] = map[string]any{"BootSourceOverrideEnabled": "Disabled"}, "On"
		set["Actions"] = map[string]any{"#ComputerSystem.Reset": map[string]any{"target": at + "/Actions/ComputerSystem.Reset"}}
		return bmc.Resource{At: at, ListedBy: []string{"/redfish/v1/Systems#Members"}, Set: set}
	}
	for name, set := range map[string]map[string]any{
		"by its name": {"Name": "GPU Baseboard"}, "by its model": {"Model": "HGX_H100"}, "by its type": {"SystemType": "Virtual"},
	} {
		t.Run("a board is none, "+name, func(t *testing.T) {
			f := withPlaces(t, extra("/redfish/v1/Systems/Tray", set))
			var log bytes.Buffer
			f.client = redfish.New(redfish.Options{Timeout: 10 * time.Second, Clock: f.clock.Now, Log: slog.New(slog.NewTextHandler(&log, nil))})
			must(t, f.open(t, f.Endpoint()).SetPower(t.Context(), hardware.TurnOff))
			if f.Power() != hardware.PowerOff || !strings.Contains(log.String(), "this one is the server") || !strings.Contains(log.String(), "path="+bmc.PathSystem) {
				t.Errorf("the power is %s; the log says %s", f.Power(), &log)
			}
		})
	}
	t.Run("two servers", func(t *testing.T) {
		f := withPlaces(t, extra("/redfish/v1/Systems/Node2", map[string]any{"Name": "Node 2", "SerialNumber": "SN0002", "HostName": "blade2"}))
		_, err := f.bmc.PowerState(t.Context())
		expect(t, err, hardware.Invalid, "put the path", fmt.Sprintf("%s, System, Example, GX-8 , serial SN0001, host name unknown, power On", bmc.PathSystem), "/redfish/v1/Systems/Node2, Node 2, serial SN0002, host name blade2, power On")
	})
}
