package conformance

import (
	"fmt"
)

func (b *BMC) mediaParent() string {
	if b.quirks.MediaUnderSystem {
		return SystemPath
	}
	return managerPath
}

func (b *BMC) bootTargets() []string {
	if b.quirks.BootTargets != nil {
		return b.quirks.BootTargets
	}
	return []string{"None", "Pxe", "Hdd", "Cd"}
}

func (b *BMC) resetTypes() []string {
	if b.quirks.ResetTypes != nil {
		return b.quirks.ResetTypes
	}
	return []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "PushPowerButton"}
}

// system is the server's ComputerSystem.
func (b *BMC) system(path string) map[string]any {
	boot := map[string]any{
		"BootSourceOverrideEnabled": b.enabled, "BootSourceOverrideTarget": b.target,
		"BootSourceOverrideTarget@Redfish.AllowableValues": b.bootTargets(), "BootSourceOverrideMode": "UEFI",
	}
	if b.quirks.NoBootMode {
		delete(boot, "BootSourceOverrideMode")
	}
	if b.quirks.NullBootTarget {
		boot["BootSourceOverrideTarget"] = nil
	}
	reset := map[string]any{"target": resetPath, "ResetType@Redfish.AllowableValues": b.resetTypes()}
	if b.quirks.ResetInfo {
		reset = map[string]any{"target": resetPath, "@Redfish.ActionInfo": SystemPath + "/ResetActionInfo"}
		b.tree[SystemPath+"/ResetActionInfo"] = map[string]any{"Id": "ResetActionInfo", "Parameters": []any{
			map[string]any{"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": b.resetTypes()},
		}}
	}
	system := map[string]any{
		"@odata.id": path, "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem", "Id": "1", "Name": "System", "SystemType": "Physical",
		"Manufacturer": "Example", "Model": "GX-8 ", "SerialNumber": "SN0001", "BiosVersion": "2.4.1", "UUID": "00010203-0405-0607-0809-0a0b0c0d0e0f",
		"PowerState": b.power, "Boot": boot,
		"Status":             map[string]any{"State": "Enabled", "Health": "OK"},
		"MemorySummary":      map[string]any{"TotalSystemMemoryGiB": 2048},
		"ProcessorSummary":   map[string]any{"Count": 2, "Model": "Example CPU 9000"},
		"Actions":            map[string]any{"#ComputerSystem.Reset": reset},
		"Processors":         ref(SystemPath + "/Processors"),
		"Memory":             ref(SystemPath + "/Memory"),
		"EthernetInterfaces": ref(SystemPath + "/EthernetInterfaces"),
		"Storage":            ref(SystemPath + "/Storage"),
		"PCIeDevices":        []any{ref("/redfish/v1/Chassis/1/PCIeDevices/GPU1"), ref("/redfish/v1/Chassis/1/PCIeDevices/NIC1")},
		"Links":              map[string]any{"Chassis": []any{ref("/redfish/v1/Chassis/1")}, "ManagedBy": []any{ref(managerPath)}},
	}
	if b.quirks.MediaUnderSystem {
		system["VirtualMedia"] = ref(SystemPath + "/VirtualMedia")
	}
	return system
}

func (b *BMC) mediaSlot() map[string]any {
	path := b.mediaParent() + mediaPath
	slot := map[string]any{
		"@odata.id": path, "Id": "Cd", "Name": "Virtual CD", "MediaTypes": []any{"CD", "DVD"}, "Inserted": b.media != "", "Image": nil,
		"Actions": map[string]any{
			"#VirtualMedia.InsertMedia": map[string]any{"target": path + insertAction},
			"#VirtualMedia.EjectMedia":  map[string]any{"target": path + ejectAction},
		},
	}
	if b.media != "" {
		slot["Image"] = b.media
	}
	return slot
}

// staticTree are the resources that do not change.
func staticTree(quirks Quirks) map[string]map[string]any {
	tree := map[string]map[string]any{
		"/redfish/v1": {
			"@odata.id": "/redfish/v1/", "Id": "RootService", "Name": "Root Service", "RedfishVersion": "1.18.0",
			"Systems": ref(systemsPath), "Chassis": ref("/redfish/v1/Chassis"), "Managers": ref("/redfish/v1/Managers"),
			"SessionService": ref("/redfish/v1/SessionService"), "Links": map[string]any{"Sessions": ref(sessionsPath)},
		},
		managerPath: {"@odata.id": managerPath, "Id": "1", "Name": "BMC"},
	}
	systems := []string{SystemPath}
	if quirks.SecondSystem {
		systems = append(systems, systemsPath+"/2")
	}
	if quirks.HGXBaseboard {
		systems = append([]string{hgxPath}, systems...)
		tree[hgxPath] = map[string]any{
			"@odata.id": hgxPath, "Id": "HGX_Baseboard_0", "Name": "HGX Baseboard", "SystemType": "Physical", "PowerState": "On",
			"Boot":    map[string]any{"BootSourceOverrideEnabled": "Disabled"}, // as good as the server but for its name
			"Actions": map[string]any{"#ComputerSystem.Reset": map[string]any{"target": hgxPath + "/Actions/ComputerSystem.Reset"}},
		}
	}
	collection(tree, systemsPath, systems...)
	media := managerPath + "/VirtualMedia"
	if quirks.MediaUnderSystem {
		media = SystemPath + "/VirtualMedia"
	} else {
		tree[managerPath]["VirtualMedia"] = ref(media)
	}
	collection(tree, media, media+"/Cd")
	addParts(tree)
	addDevices(tree, quirks)
	return tree
}

func addParts(tree map[string]map[string]any) {
	for i := range 2 {
		p := fmt.Sprintf("%s/Processors/CPU%d", SystemPath, i)
		tree[p] = map[string]any{"@odata.id": p, "Id": fmt.Sprint(i), "ProcessorType": "CPU", "InstructionSet": "x86-64", "TotalThreads": 112, "TotalCores": 56}
		m := fmt.Sprintf("%s/Memory/DIMM%d", SystemPath, i)
		tree[m] = map[string]any{"@odata.id": m, "Id": fmt.Sprint(i), "CapacityMiB": 65536}
		n := fmt.Sprintf("%s/EthernetInterfaces/NIC.%d", SystemPath, i)
		tree[n] = map[string]any{"@odata.id": n, "Id": fmt.Sprintf("NIC.%d", i), "MACAddress": fmt.Sprintf("52:54:00:AA:00:0%d", 2-i), "SpeedMbps": 25000, "LinkStatus": "LinkUp"}
		d := fmt.Sprintf("%s/Storage/S1/Drives/D%d", SystemPath, i)
		tree[d] = map[string]any{
			"@odata.id": d, "Id": fmt.Sprintf("D%d", i), "Model": "NVMe 9", "SerialNumber": fmt.Sprintf("DRIVE%d", i), "CapacityBytes": 3840755982336, "MediaType": "SSD",
			"Identifiers": []any{map[string]any{"DurableName": fmt.Sprintf("EUI.0025385B71B0000%d", i), "DurableNameFormat": "EUI"}},
		}
	}
	collection(tree, SystemPath+"/Processors", SystemPath+"/Processors/CPU0", SystemPath+"/Processors/CPU1")
	collection(tree, SystemPath+"/Memory", SystemPath+"/Memory/DIMM0", SystemPath+"/Memory/DIMM1")
	collection(tree, SystemPath+"/EthernetInterfaces", SystemPath+"/EthernetInterfaces/NIC.0", SystemPath+"/EthernetInterfaces/NIC.1")
	collection(tree, SystemPath+"/Storage", SystemPath+"/Storage/S1")
	tree[SystemPath+"/Storage/S1"] = map[string]any{
		"@odata.id": SystemPath + "/Storage/S1", "Id": "S1",
		"Drives": []any{ref(SystemPath + "/Storage/S1/Drives/D0"), ref(SystemPath + "/Storage/S1/Drives/D1")},
	}
}

// addDevices adds an H100 (10de:2330) and a ConnectX-7 (15b3:1021), and on HGX a second H100 in a chassis of its own.
func addDevices(tree map[string]map[string]any, quirks Quirks) {
	chassis := []string{"/redfish/v1/Chassis/1"}
	device(tree, chassis[0], "GPU1", "H100 SXM5", "0x10DE", "0x2330", "0x030200")
	device(tree, chassis[0], "NIC1", "ConnectX-7", "0x15B3", "0x1021", "0x020000")
	if quirks.HGXBaseboard {
		chassis = append(chassis, "/redfish/v1/Chassis/HGX_GPU_SXM_2")
		device(tree, chassis[1], "GPU2", "H100 SXM5", "0x10DE", "0x2330", "0x030200")
	}
	for _, c := range chassis {
		tree[c] = map[string]any{"@odata.id": c, "Id": c, "PCIeDevices": ref(c + "/PCIeDevices")}
	}
	collection(tree, "/redfish/v1/Chassis", chassis...)
	collection(tree, "/redfish/v1/Chassis/1/PCIeDevices", "/redfish/v1/Chassis/1/PCIeDevices/GPU1", "/redfish/v1/Chassis/1/PCIeDevices/NIC1")
	if quirks.HGXBaseboard {
		collection(tree, chassis[1]+"/PCIeDevices", chassis[1]+"/PCIeDevices/GPU2")
	}
}

func device(tree map[string]map[string]any, chassis, id, model, vendor, deviceID, class string) {
	d := chassis + "/PCIeDevices/" + id
	tree[d] = map[string]any{"@odata.id": d, "Id": id, "Model": model, "PCIeFunctions": ref(d + "/PCIeFunctions")}
	collection(tree, d+"/PCIeFunctions", d+"/PCIeFunctions/0")
	tree[d+"/PCIeFunctions/0"] = map[string]any{
		"@odata.id": d + "/PCIeFunctions/0", "Id": "0", "VendorId": vendor, "DeviceId": deviceID, "ClassCode": class,
	}
}

func collection(tree map[string]map[string]any, path string, members ...string) {
	refs := []any{}
	for _, member := range members {
		refs = append(refs, ref(member))
	}
	tree[path] = map[string]any{"@odata.id": path, "Name": path, "Members": refs, "Members@odata.count": len(refs)}
}

func ref(path string) map[string]any { return map[string]any{"@odata.id": path} }
