package ironic

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/ports"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// minorInventory is the version that has the inventory of a node. An older Ironic tells the properties and the ports alone.
const minorInventory = 81

// mib is the unit of memory_mb and physical_mb.
const mib = 1 << 20

// pluginData is what is read of the data of Ironic's inspection beside the inventory. The devices are there where the agent's collector pci-devices is enabled.
type pluginData struct {
	PCIDevices *[]struct {
		VendorID  string `json:"vendor_id"`
		ProductID string `json:"product_id"`
		Class     string `json:"class"`
		Bus       string `json:"bus"`
	} `json:"pci_devices"`
}

// inventoryOf returns what Ironic knows of the hardware of a node: by its inspection, which may have stored nothing, else by the properties and the ports.
func inventoryOf(properties map[string]any, data *nodes.InventoryData, macs []string) *hardware.Inventory {
	out := &hardware.Inventory{
		Architecture: hardware.ArchitectureName(text(properties["cpu_arch"])), CPUThreads: int(number(properties["cpus"])), MemoryBytes: number(properties["memory_mb"]) * mib,
	}
	for _, mac := range macs {
		out.NICs = append(out.NICs, hardware.NIC{MAC: strings.ToLower(mac)})
	}
	if data == nil {
		return out
	}
	found := data.Inventory
	out.Manufacturer, out.Model, out.SerialNumber = found.SystemVendor.Manufacturer, found.SystemVendor.ProductName, found.SystemVendor.SerialNumber
	out.BIOSVersion, out.BIOSDate = found.SystemVendor.Firmware.Version, found.SystemVendor.Firmware.BuildDate
	out.Architecture = hardware.ArchitectureName(cmp.Or(found.CPU.Architecture, out.Architecture))
	out.CPUModel, out.CPUThreads = found.CPU.ModelName, cmp.Or(found.CPU.Count, out.CPUThreads)
	out.MemoryBytes = cmp.Or(number(float64(found.Memory.PhysicalMb))*mib, out.MemoryBytes)
	addInterfaces(out, data)
	for _, d := range found.Disks {
		out.Disks = append(out.Disks, hardware.Disk{
			Name: d.Name, Model: strings.TrimSpace(d.Model), SerialNumber: d.Serial, WWN: cmp.Or(d.WwnWithExtension, d.Wwn), SizeBytes: max(d.Size, 0), Rotational: d.Rotational,
		})
	}
	addPCIDevices(out, data.PluginData.RawMessage)
	return out
}

// addInterfaces adds the interfaces of the inventory. A port that the inventory has is not a second one.
func addInterfaces(out *hardware.Inventory, data *nodes.InventoryData) {
	known := make(map[string]int, len(out.NICs))
	for at, nic := range slices.Backward(out.NICs) {
		known[nic.MAC] = at
	}
	for _, found := range data.Inventory.Interfaces {
		mac := strings.ToLower(found.MACAddress)
		if mac == "" {
			continue
		}
		nic := hardware.NIC{Name: found.Name, MAC: mac, SpeedMbps: found.SpeedMbps, Up: found.HasCarrier, NoLink: !found.HasCarrier, PCIID: pciID(found.Vendor, found.Product)}
		if at, isKnown := known[mac]; isKnown {
			out.NICs[at] = nic
			continue
		}
		known[mac], out.NICs = len(out.NICs), append(out.NICs, nic)
	}
}

// addPCIDevices adds the devices that Ironic's agent found when it scanned the PCI bus. Where it did not, they stay unknown.
func addPCIDevices(out *hardware.Inventory, raw json.RawMessage) {
	var plugin pluginData
	if len(raw) == 0 || json.Unmarshal(raw, &plugin) != nil || plugin.PCIDevices == nil {
		return
	}
	out.DeviceSource = hardware.DevicesByAgent
	for _, d := range *plugin.PCIDevices {
		out.PCIDevices = append(out.PCIDevices, hardware.PCIDevice{Address: d.Bus, VendorID: hexID(d.VendorID), DeviceID: hexID(d.ProductID), Class: hexID(d.Class)})
	}
}

// pciID returns VENDOR:DEVICE, and nothing where one of them is not known.
func pciID(vendor, device string) string {
	if vendor, device = hexID(vendor), hexID(device); vendor != "" && device != "" {
		return vendor + ":" + device
	}
	return ""
}

func hexID(id string) string { return strings.TrimPrefix(strings.ToLower(id), "0x") }

// number returns a property, which people and drivers write as a number or as text; 0: it is none.
func number(value any) int64 {
	switch v := value.(type) {
	case float64:
		if v >= 0 && v <= math.MaxInt32 {
			return int64(v)
		}
	case string:
		if n, err := strconv.ParseInt(v, 10, 32); err == nil && n >= 0 {
			return n
		}
	}
	return 0
}

// inventories are what was read of the hosts whose last attempt is an inspection.
type inventories struct {
	mu     sync.Mutex
	byHost map[string]readInventory
}

type readInventory struct {
	attempt   int64
	inventory *hardware.Inventory
}

func (i *inventories) get(uid string, attempt int64) *hardware.Inventory {
	i.mu.Lock()
	defer i.mu.Unlock()
	if read := i.byHost[uid]; read.attempt == attempt {
		return read.inventory
	}
	return nil
}

func (i *inventories) set(uid string, attempt int64, inventory *hardware.Inventory) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byHost == nil {
		i.byHost = map[string]readInventory{}
	}
	i.byHost[uid] = readInventory{attempt, inventory}
}

// inventory returns what Ironic has found, once for each inspection that has succeeded; nil: no inspection has ended.
func (i *Installer) inventory(ctx context.Context, host hardware.Host, n node, status *hardware.AttemptStatus) (*hardware.Inventory, error) {
	if status == nil || status.State != hardware.AttemptSucceeded || n.record.work != workInspect {
		return nil, nil
	}
	if known := i.inventories.get(host.UID, status.Number); known != nil {
		return known, nil
	}
	data, err := i.readInventory(ctx, host, n)
	if err != nil {
		return nil, err
	}
	var macs []string
	if data == nil || len(data.Inventory.Interfaces) == 0 {
		if macs, err = i.readMACs(ctx, host, n); err != nil {
			return nil, err
		}
	}
	found := inventoryOf(n.properties, data, macs)
	if err := input.Clean(found, hardware.MaxText, hardware.MaxParts); err != nil {
		return nil, hardware.Errorf(hardware.Invalid, "read inventory", host.String(), "%w", err)
	}
	i.inventories.set(host.UID, status.Number, found)
	return found, nil
}

// readInventory returns what the inspection has stored; nil: nothing.
func (i *Installer) readInventory(ctx context.Context, host hardware.Host, n node) (*nodes.InventoryData, error) {
	service, minor, err := i.client.open(ctx)
	if err != nil || minor < minorInventory {
		return nil, err
	}
	data, err := nodes.GetInventory(ctx, service, n.uuid).Extract()
	if err != nil {
		if err = asError(err, "read inventory", host.String()); hardware.KindOf(err) == hardware.NotFound {
			return nil, nil
		}
		return nil, i.failed(err)
	}
	return data, nil
}

// readMACs returns the MAC addresses of the node's ports.
func (i *Installer) readMACs(ctx context.Context, host hardware.Host, n node) (macs []string, err error) {
	const op = "read ports"
	service, _, err := i.client.open(ctx)
	if err != nil {
		return nil, err
	}
	found, err := i.listPorts(ctx, service, op, host, ports.ListOpts{NodeUUID: n.uuid, Fields: []string{"address"}})
	if err != nil {
		return nil, err
	}
	for _, port := range found {
		macs = append(macs, port.Address)
	}
	return macs, nil
}
