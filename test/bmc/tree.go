package bmc

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// PathSystem is the server's ComputerSystem.
const PathSystem = "/redfish/v1/Systems/1"

const (
	pathRoot         = "/redfish/v1"
	pathSystems      = "/redfish/v1/Systems"
	pathSecondSystem = "/redfish/v1/Systems/2"
	pathHGX          = "/redfish/v1/Systems/HGX_Baseboard_0"
	pathReset        = PathSystem + actionReset
	pathSessions     = "/redfish/v1/SessionService/Sessions"
	pathChassis      = "/redfish/v1/Chassis"
	pathManager      = "/redfish/v1/Managers/1"
	actionReset      = "/Actions/ComputerSystem.Reset"
	actionInsert     = "/Actions/VirtualMedia.InsertMedia"
	actionEject      = "/Actions/VirtualMedia.EjectMedia"
	// dimmMiB is the size of one memory module, threadsPerCPU the most threads that one socket has.
	dimmMiB       = 65536
	threadsPerCPU = 128
	nvidia        = "10de"
)

// tree holds the resources by their path, without the values that change.
type tree map[string]map[string]any

func buildTree(inventory hardware.Inventory, personality Personality) tree {
	t := tree{}
	t.addRoot(inventory, personality.Login.Sessions)
	t.collection("/redfish/v1/Managers", pathManager)
	t.add(pathManager, "#Manager.v1_19_0.Manager", map[string]any{"Name": "BMC", "ManagerType": "BMC", "FirmwareVersion": "1.7.0", "Links": map[string]any{"ManagerForServers": []any{ref(PathSystem)}}})
	systems := []string{PathSystem}
	if personality.SecondSystem {
		systems = append(systems, pathSecondSystem)
	}
	if personality.HGXBaseboard {
		systems = append([]string{pathHGX}, systems...)
		// Nothing but its name tells the baseboard from the server.
		t.add(pathHGX, "#ComputerSystem.v1_22_0.ComputerSystem", map[string]any{
			"Name": "HGX Baseboard", "SystemType": "Physical", "PowerState": hardware.PowerOn,
			"Boot": map[string]any{"BootSourceOverrideEnabled": "Disabled"},
			"Actions": map[string]any{"#ComputerSystem.Reset": map[string]any{
				"target": pathHGX + actionReset, "ResetType@Redfish.AllowableValues": []string{"ForceRestart"},
			}},
		})
	}
	members := systems
	if personality.GhostSystem != "" {
		members = append([]string{pathSystems + "/" + personality.GhostSystem}, systems...)
	}
	t.collection(pathSystems, members...)
	for _, path := range systems {
		if path != pathHGX {
			t.addSystem(path, inventory, personality)
		}
	}
	t.addParts(inventory)
	t.addDevices(inventory, personality)
	t.addMedia(personality)
	t.addBootOptions(personality.Boot.Order)
	t.addResources(personality.Resources)
	return t
}

// addRoot adds the service root, with links to sessions unless the BMC has none.
func (t tree) addRoot(inventory hardware.Inventory, sessions SessionService) {
	root := map[string]any{
		"Id": "RootService", "Name": "Root Service", "RedfishVersion": "1.18.0", "Vendor": inventory.Manufacturer,
		"Systems": ref(pathSystems), "Chassis": ref(pathChassis), "Managers": ref("/redfish/v1/Managers"),
	}
	t.add(pathRoot, "#ServiceRoot.v1_16_0.ServiceRoot", root)
	if sessions == SessionsAbsent {
		return
	}
	root["SessionService"], root["Links"] = ref("/redfish/v1/SessionService"), map[string]any{"Sessions": ref(pathSessions)}
	t.add("/redfish/v1/SessionService", "#SessionService.v1_1_9.SessionService", map[string]any{"Name": "Sessions", "ServiceEnabled": sessions != SessionsDisabled, "Sessions": ref(pathSessions)})
}

func (t tree) addSystem(path string, inventory hardware.Inventory, personality Personality) {
	reset := map[string]any{"target": pathReset, "ResetType@Redfish.AllowableValues": personality.Power.resetTypes()}
	if personality.Power.ActionInfo {
		info := t.add(PathSystem+"/ResetActionInfo", "#ActionInfo.v1_4_2.ActionInfo", map[string]any{"Parameters": []any{
			map[string]any{"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": personality.Power.resetTypes()},
		}})
		reset = map[string]any{"target": pathReset, "@Redfish.ActionInfo": info}
	}
	system := map[string]any{
		"Name": "System", "SystemType": "Physical", "Manufacturer": inventory.Manufacturer, "Model": inventory.Model,
		"SerialNumber": inventory.SerialNumber, "BiosVersion": inventory.BIOSVersion, "UUID": reversedUUID(inventory.SystemUUID),
		"Status":           map[string]any{"State": "Enabled", "Health": "OK"},
		"MemorySummary":    map[string]any{"TotalSystemMemoryGiB": inventory.MemoryBytes >> 30},
		"ProcessorSummary": map[string]any{"Count": sockets(inventory), "LogicalProcessorCount": inventory.CPUThreads, "Model": inventory.CPUModel},
		"Actions":          map[string]any{"#ComputerSystem.Reset": reset},
		"Processors":       ref(PathSystem + "/Processors"), "Memory": ref(PathSystem + "/Memory"),
		"EthernetInterfaces": ref(PathSystem + "/EthernetInterfaces"), "Storage": ref(PathSystem + "/Storage"),
		"Links": map[string]any{"Chassis": []any{ref(pathChassis + "/1")}, "ManagedBy": []any{ref(pathManager)}},
	}
	t.add(path, "#ComputerSystem.v1_22_0.ComputerSystem", system)
	if personality.SecureBoot != nil {
		system["SecureBoot"] = ref(path + "/SecureBoot")
		t.add(path+"/SecureBoot", "#SecureBoot.v1_1_2.SecureBoot", maps.Clone(personality.SecureBoot))
	}
	if settings := personality.pathSettings(); settings != "" {
		if !personality.Boot.Settings.Unlinked {
			system["@Redfish.Settings"] = map[string]any{"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": ref(settings)}
		}
		t.add(settings, "#ComputerSystem.v1_22_0.ComputerSystem", map[string]any{"Name": "Settings"})
	}
}

func sockets(inventory hardware.Inventory) int {
	return max(1, (inventory.CPUThreads+threadsPerCPU-1)/threadsPerCPU)
}

func (t tree) addParts(inventory hardware.Inventory) {
	instructions := map[string]string{"amd64": "x86-64", "arm64": "ARM-A64"}[inventory.Architecture]
	architecture := map[string]string{"amd64": "x86", "arm64": "ARM"}[inventory.Architecture]
	var members []string
	for i := range sockets(inventory) {
		threads := inventory.CPUThreads / sockets(inventory)
		members = append(members, t.add(fmt.Sprintf("%s/Processors/CPU%d", PathSystem, i), "#Processor.v1_20_0.Processor", map[string]any{
			"ProcessorType": "CPU", "ProcessorArchitecture": architecture, "InstructionSet": instructions, "Model": inventory.CPUModel, "TotalThreads": threads, "TotalCores": threads / 2,
		}))
	}
	t.collection(PathSystem+"/Processors", members...)
	members = nil
	for i := range inventory.MemoryBytes >> 20 / dimmMiB {
		members = append(members, t.add(fmt.Sprintf("%s/Memory/DIMM%d", PathSystem, i), "#Memory.v1_20_0.Memory", map[string]any{"CapacityMiB": dimmMiB, "MemoryDeviceType": "DDR5"}))
	}
	t.collection(PathSystem+"/Memory", members...)
	members = nil
	for _, nic := range inventory.NICs {
		link := "LinkDown"
		if nic.Up {
			link = "LinkUp"
		}
		members = append(members, t.add(PathSystem+"/EthernetInterfaces/"+nic.Name, "#EthernetInterface.v1_12_0.EthernetInterface", map[string]any{
			"MACAddress": strings.ToUpper(nic.MAC), "PermanentMACAddress": strings.ToUpper(nic.MAC), "SpeedMbps": nic.SpeedMbps, "LinkStatus": link,
		}))
	}
	t.collection(PathSystem+"/EthernetInterfaces", members...)
	storage, drives := PathSystem+"/Storage/NVMe", []any{}
	for i, disk := range inventory.Disks {
		drives = append(drives, ref(t.add(fmt.Sprintf("%s/Drives/%d", storage, i), "#Drive.v1_20_0.Drive", map[string]any{
			"Model": disk.Model, "SerialNumber": disk.SerialNumber, "CapacityBytes": disk.SizeBytes, "MediaType": "SSD", "Protocol": "NVMe",
			"Identifiers": []any{map[string]any{"DurableName": strings.TrimPrefix(disk.WWN, "eui."), "DurableNameFormat": "EUI"}},
		})))
	}
	t.add(storage, "#Storage.v1_17_0.Storage", map[string]any{"Name": "NVMe", "Drives": drives})
	t.collection(PathSystem+"/Storage", storage)
}

// addDevices puts the PCI devices into the server's chassis. On HGX each of NVIDIA's devices is in a chassis of its own, to
// which the server's system has no link.
func (t tree) addDevices(inventory hardware.Inventory, personality Personality) {
	devices := map[string][]string{}
	chassis := []string{pathChassis + "/1"}
	count := map[string]int{}
	for i, device := range inventory.PCIDevices {
		home := chassis[0]
		if personality.HGXBaseboard && device.VendorID == nvidia {
			kind := "GPU_SXM"
			if strings.HasPrefix(device.Class, "0680") {
				kind = "NVSwitch"
			}
			count[kind]++
			home = fmt.Sprintf("%s/HGX_%s_%d", pathChassis, kind, count[kind])
			chassis = append(chassis, home)
		}
		devices[home] = append(devices[home], t.addDevice(fmt.Sprintf("%s/PCIeDevices/%d", home, i+1), device))
	}
	for _, c := range chassis {
		t.add(c, "#Chassis.v1_25_0.Chassis", map[string]any{"Name": path.Base(c), "ChassisType": "Module", "PCIeDevices": ref(c + "/PCIeDevices")})
		t.collection(c+"/PCIeDevices", devices[c]...)
	}
	t.collection(pathChassis, chassis...)
	if personality.SystemListsDevices {
		t[PathSystem]["PCIeDevices"] = refs(devices[chassis[0]])
	}
}

func (t tree) addDevice(at string, device hardware.PCIDevice) string {
	t.add(at, "#PCIeDevice.v1_16_0.PCIeDevice", map[string]any{"Name": device.Model, "Model": device.Model, "PCIeFunctions": ref(at + "/PCIeFunctions")})
	t.collection(at+"/PCIeFunctions", t.add(at+"/PCIeFunctions/0", "#PCIeFunction.v1_6_0.PCIeFunction", map[string]any{
		"VendorId": "0x" + strings.ToUpper(device.VendorID), "DeviceId": "0x" + strings.ToUpper(device.DeviceID), "ClassCode": "0x" + device.Class, "FunctionId": 0,
	}))
	return at
}

// add adds a resource, with the members that every resource has, and returns its path.
func (t tree) add(at, kind string, document map[string]any) string {
	document["@odata.id"], document["@odata.type"] = at, kind
	for _, name := range []string{"Id", "Name"} {
		if document[name] == nil {
			document[name] = path.Base(at)
		}
	}
	t[at] = document
	return at
}

func (t tree) collection(at string, members ...string) {
	t.add(at, "#Collection.Collection", map[string]any{"Members": refs(members), "Members@odata.count": len(members)})
}

func refs(paths []string) []any {
	out := []any{}
	for _, path := range paths {
		out = append(out, ref(path))
	}
	return out
}

func ref(to string) map[string]any { return map[string]any{"@odata.id": to} }

// reversedUUID reverses the bytes of a UUID's first three fields, as SMBIOS before 2.6 and much firmware do.
func reversedUUID(uuid string) string {
	parts := strings.Split(uuid, "-")
	for i := range min(3, len(parts)) {
		var reversed strings.Builder
		for at := len(parts[i]) - 2; at >= 0; at -= 2 {
			reversed.WriteString(parts[i][at : at+2])
		}
		parts[i] = reversed.String()
	}
	return strings.Join(parts, "-")
}
