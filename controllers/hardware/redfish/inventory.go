package redfish

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/identity"
)

// stateAbsent is the Status.State of a slot without a component.
const stateAbsent = "Absent"

const opInventory = "read inventory"

// status is the member Status of a resource.
type status struct{ State string }

// systemValues are the members of a ComputerSystem that an inventory has.
type systemValues struct {
	Manufacturer     string
	Model            string
	SerialNumber     string
	BiosVersion      string
	ProcessorSummary struct {
		Model                 string
		LogicalProcessorCount number
	}
	MemorySummary struct{ TotalSystemMemoryGiB number }
}

// Inventory implements hardware.BMC. An inventory is complete or it fails: a resource that does not exist is left out, and any other failure of one
// resource is the failure of Inventory, which the caller repeats. Inventory also fails when the context ends. SystemUUID is always empty,
// because the UUID that a BMC reports is never compared. DeviceSource is empty: PCIDevices are the lists of the BMC.
func (b *bmc) Inventory(ctx context.Context) (hardware.Inventory, error) {
	var inventory hardware.Inventory
	err := b.call(ctx, opInventory, func(c *conn) error {
		s, err := c.serverSystem()
		if err != nil {
			return err
		}
		w, err := newCrawl(c, s)
		if err != nil {
			return err
		}
		for _, read := range []func(*system) error{w.readSystemValues, w.readProcessors, w.readNICs, w.readDisks, w.readPCIDevices, w.readSecureBoot, w.readBMCVersion} {
			if err := read(s); err != nil {
				return err
			}
		}
		inventory = w.inventory
		if err := input.Clean(&inventory, hardware.MaxText, hardware.MaxParts); err != nil {
			return fmt.Errorf("%w: %w", errTooLarge, err)
		}
		return nil
	})
	if err != nil {
		return hardware.Inventory{}, deadlineError(ctx, opInventory, b.endpoint.Address, err)
	}
	return inventory, nil
}

// readSystemValues sets what the system itself reports, and MemoryBytes.
func (w *crawl) readSystemValues(s *system) error {
	var v systemValues
	if err := w.decode(s.ODataID, s.raw, &v); err != nil {
		return err
	}
	i := &w.inventory
	i.Manufacturer, i.Model, i.SerialNumber = strings.TrimSpace(v.Manufacturer), strings.TrimSpace(v.Model), strings.TrimSpace(v.SerialNumber)
	i.BIOSVersion, i.CPUModel, i.CPUThreads = strings.TrimSpace(v.BiosVersion), strings.TrimSpace(v.ProcessorSummary.Model), 0
	if isPlaceholder(i.CPUModel) {
		i.CPUModel = ""
	}
	if n := v.ProcessorSummary.LogicalProcessorCount; n > 0 && n < 1<<20 {
		i.CPUThreads = int(n)
	}
	if gib := v.MemorySummary.TotalSystemMemoryGiB; gib > 0 && gib < 1<<20 {
		i.MemoryBytes = int64(gib * (1 << 30))
		return nil
	}
	return w.readMemory(s.links.Memory.String())
}

// readBMCVersion sets BMCVersion from the managers that manage the server. A manager of another type, such as that of a chassis or of a service
// processor, is not the BMC.
func (w *crawl) readBMCVersion(s *system) error {
	managers, err := readLinked[struct{ ManagerType, FirmwareVersion string }](w, s.links.Links.ManagedBy.ToStrings())
	for _, m := range managers {
		version := strings.TrimSpace(m.FirmwareVersion)
		if (m.ManagerType == "" || m.ManagerType == "BMC") && !isPlaceholder(version) {
			w.inventory.BMCVersion = cmp.Or(w.inventory.BMCVersion, version)
		}
	}
	return err
}

// isPlaceholder reports whether the text is what firmware writes in place of a value that it does not know.
func isPlaceholder(text string) bool {
	return placeholder.MatchString(strings.TrimSpace(text))
}

var placeholder = regexp.MustCompile(`(?i)^(n/?a|none|null|unknown|undefined|not (available|specified|present|applicable)|available for assignment|default string|to be filled.*|\?+|-+|0+)$`)

// memoryModule is a Memory of the server, or of a baseboard.
type memoryModule struct {
	ID               string `json:"Id"`
	Name             string
	CapacityMiB      *number
	MemoryDeviceType string
	Status           status
}

// isOfGPU reports whether the module is memory of a GPU, which is no memory of the server.
func (m memoryModule) isOfGPU() bool {
	kind := strings.ToUpper(m.MemoryDeviceType)
	return strings.HasPrefix(kind, "HBM") || strings.HasPrefix(kind, "GDDR") || gpuWord.MatchString(m.ID+" "+m.Name)
}

// readMemory sets MemoryBytes from the modules. It is used when the system reports no size, or 0, which means the same. The size stays unknown when
// one module that is there does not tell its own, because the sum would be too small. An empty slot is absent, or of size 0.
func (w *crawl) readMemory(collection string) error {
	modules, err := readMembers[memoryModule](w, collection)
	total := int64(0)
	for _, m := range modules {
		switch {
		case m.Status.State == stateAbsent, m.isOfGPU():
		case m.CapacityMiB == nil:
			return err
		case *m.CapacityMiB > 0 && *m.CapacityMiB < 1<<30:
			total += int64(*m.CapacityMiB) << 20
		}
	}
	if w.missing[collection] == 0 {
		w.inventory.MemoryBytes = total
	}
	return err
}

// processor is a Processor of the server, or of a baseboard.
type processor struct {
	ID                    string `json:"Id"`
	ProcessorType         string
	Name                  string
	Manufacturer          string
	Model                 string
	InstructionSet        string
	ProcessorArchitecture string
	TotalThreads          number
	ProcessorID           struct{ EffectiveFamily string } `json:"ProcessorId"`
	Status                status
}

// modelName returns the name of the processor's model. A DGX has it where others have the number of the family.
func (p processor) modelName() string {
	for _, name := range []string{p.Model, p.ProcessorID.EffectiveFamily} {
		name = strings.TrimSpace(name)
		if !isPlaceholder(name) && (name == strings.TrimSpace(p.Model) || strings.Contains(name, " ")) && name != "" {
			return name
		}
	}
	return ""
}

// architecture returns the architecture as Go and Kubernetes name it.
func (p processor) architecture() string {
	switch cmp.Or(p.InstructionSet, p.ProcessorArchitecture) {
	case "x86-64", "x86":
		return "amd64"
	case "ARM-A64", "ARM":
		return "arm64"
	}
	return ""
}

// readProcessors sets CPUModel, CPUThreads and Architecture, and adds the GPUs among the processors. The processors tell more than the summary of the
// system. The number of threads is that of the summary when one processor does not tell its own, because the sum would be too small.
func (w *crawl) readProcessors(s *system) error {
	all, err := readMembers[processor](w, s.links.Processors.String())
	if err != nil {
		return err
	}
	list := s.ODataID + "/Processors"
	w.addGPUProcessors(list, all, false, "")
	w.addMissing(list, s.links.Processors.String())
	w.addCPUs(slices.DeleteFunc(all, func(p processor) bool { return !p.isCPU() }), w.missing[s.links.Processors.String()] > 0)
	return nil
}

// addCPUs sets what the CPUs tell. isPart is true when there are more than those.
func (w *crawl) addCPUs(cpus []processor, isPart bool) {
	threads, model, i := number(0), "", &w.inventory
	for _, p := range cpus {
		threads += max(p.TotalThreads, 0)
		model = cmp.Or(model, p.modelName())
		i.Architecture = cmp.Or(i.Architecture, p.architecture())
	}
	i.CPUModel = cmp.Or(model, i.CPUModel)
	isComplete := len(cpus) > 0 && !isPart && !slices.ContainsFunc(cpus, func(p processor) bool { return p.TotalThreads <= 0 })
	if isComplete && threads < 1<<20 {
		i.CPUThreads = int(threads)
	}
}

// isCPU reports whether the processor is a CPU that is there.
func (p processor) isCPU() bool {
	return (strings.TrimSpace(p.ProcessorType) == "" && !p.isGPU() && !p.canBeGPU(false) || p.isTyped("CPU")) && !p.isAbsent()
}

// ethernetInterface is a NIC of the server.
type ethernetInterface struct {
	ID                  string `json:"Id"`
	MACAddress          string
	PermanentMACAddress string
	LinkStatus          string
	SpeedMbps           number
	IPv4Addresses       []struct{ Address string }
	Links               struct{ HostInterface schemas.Link }
	Status              status
}

// readNICs reads the network interfaces. They are identified by their MAC address, because iLO 6 changes their ids at every reboot.
func (w *crawl) readNICs(s *system) error {
	all, err := readMembers[ethernetInterface](w, s.links.EthernetInterfaces.String())
	nics := &w.inventory.NICs
	for _, e := range all {
		mac := cmp.Or(usableMAC(e.PermanentMACAddress), usableMAC(e.MACAddress))
		if mac == "" || e.Status.State == stateAbsent || e.isHostInterface(mac) {
			continue // a port without an address cannot be identified
		}
		nic := hardware.NIC{Name: e.ID, MAC: mac, Up: e.LinkStatus == "LinkUp"}
		if e.SpeedMbps > 0 && e.SpeedMbps < 1<<30 {
			nic.SpeedMbps = int(e.SpeedMbps)
		}
		*nics = append(*nics, nic)
	}
	slices.SortStableFunc(*nics, func(a, b hardware.NIC) int { return cmp.Compare(a.MAC, b.MAC) })
	*nics = slices.CompactFunc(*nics, func(a, b hardware.NIC) bool { return a.MAC == b.MAC })
	return err
}

// isHostInterface reports whether the interface is the USB NIC by which the server reaches its BMC. Its address may be the same on every server.
func (e ethernetInterface) isHostInterface(mac string) bool {
	if e.Links.HostInterface != "" {
		return true
	}
	address, err := net.ParseMAC(mac)
	isLocal := err == nil && address[0]&2 != 0
	return isLocal && slices.ContainsFunc(e.IPv4Addresses, func(ip struct{ Address string }) bool { return strings.HasPrefix(ip.Address, "169.254.") })
}

// usableMAC returns the address in lower case with colons. It returns "" for a text that is the address of no interface.
func usableMAC(text string) string {
	mac, err := net.ParseMAC(strings.TrimSpace(text))
	if err != nil || !identity.IsInterfaceAddress(mac) {
		return ""
	}
	return mac.String()
}
