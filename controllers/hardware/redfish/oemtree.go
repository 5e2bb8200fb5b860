package redfish

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// maxOEMReads is how many resources of vendors' own trees are read, and maxOEMDepth how far a link in them is followed.
	maxOEMReads = 128
	maxOEMDepth = 3
)

// Words of links and members that lead to devices, of those that do not, and of the graphics that a BMC has of its own.
var (
	devicesWord    = regexp.MustCompile(`(?i)gpu|accelerator|graphics|video|^devices?$|pcie?_?(device|card|slot)|(device|hardware|gpu)_?inventory`)
	noDevicesWord  = regexp.MustCompile(`(?i)sensor|metric|thermal|temperature|power|firmware|certificate|license|log|action|polic|profile|config|setting|schema|assembl|update|target|remote|virtual|kvm|record|capture|console|crash`)
	gpuPlaceWord   = regexp.MustCompile(`(?i)gpu|accelerator`)
	gpuTypeWord    = regexp.MustCompile(`(?i)gpu|accelerator|graphic|display|video|\b3d\b`)
	countWord      = regexp.MustCompile(`(?i)count|num|total|quantity`)
	ownGraphicWord = regexp.MustCompile(`(?i)embedded|on-?board|matrox|aspeed|ast[0-9]{4}|\bbmc\b|ilo|idrac|\bvga\b`)
)

// oemDevice is a device in a vendor's own tree, whose members have no schema.
type oemDevice struct {
	ID                                                            string `json:"Id"`
	DeviceType, ProcessorType, Type, DeviceClass, Class, Category word
	Name, DeviceName, Model, ProductName, MarketingName, GPUModel string
	Manufacturer, Vendor, GPUVendor                               string
	VendorID                                                      word `json:"VendorId"`
	DeviceID                                                      word `json:"DeviceId"`
	Status                                                        status
}

// kind returns what the device says that it is.
func (d oemDevice) kind() string {
	return strings.TrimSpace(strings.Join([]string{string(d.DeviceType), string(d.ProcessorType), string(d.Type), string(d.DeviceClass), string(d.Class), string(d.Category)}, " "))
}

// device returns the device with its names.
func (d oemDevice) device() pciDevice {
	return pciDevice{Name: cmp.Or(d.Name, d.DeviceName, d.ProductName), Manufacturer: cmp.Or(d.Manufacturer, d.Vendor, d.GPUVendor), Model: cmp.Or(d.Model, d.MarketingName, d.GPUModel)}
}

// isNamed reports whether anything is said of the device.
func (d oemDevice) isNamed() bool {
	return d.kind() != "" || d.Model != "" || d.GPUModel != "" || d.ProductName != "" || d.MarketingName != "" || d.Manufacturer != "" || d.VendorID != ""
}

// oemTree reads one vendor's tree into a list of its own: a GPU may be in several trees.
type oemTree struct {
	*crawl
	list    string
	visited map[string]bool
}

// keepElsewhere keeps the members of a resource that may lead to devices outside the resources of PCI devices.
func (w *crawl) keepElsewhere(members ...json.RawMessage) {
	for _, member := range members {
		if len(member) > 0 {
			w.elsewhere = append(w.elsewhere, member)
		}
	}
}

// readElsewhere adds the GPUs of vendors' own trees, and of a system's graphics controllers. It is used where no list of processors and PCI devices has a GPU:
// HPE has them in Chassis/Devices, and others below Oem. What cannot be read leaves it open whether the server has any.
func (w *crawl) readElsewhere(s *system) error {
	if w.hasGPU() {
		return nil
	}
	var own struct {
		Oem                 json.RawMessage
		GraphicsControllers json.RawMessage
		Devices             json.RawMessage
		Links               struct{ Oem json.RawMessage }
	}
	if err := w.decode(s.ODataID, s.raw, &own); err != nil {
		return err
	}
	graphics, err := json.Marshal(map[string]json.RawMessage{"GraphicsControllers": own.GraphicsControllers, "Devices": own.Devices})
	if err != nil {
		return err
	}
	w.keepElsewhere(w.login.root.Oem, own.Oem, own.Links.Oem, graphics)
	visited := map[string]bool{}
	for _, member := range w.elsewhere {
		t := &oemTree{crawl: w, visited: visited}
		if err := t.walk("", member, 0); err != nil {
			return err
		}
	}
	return nil
}

// walk looks for devices in a part of a resource, which has the name.
func (t *oemTree) walk(name string, raw json.RawMessage, depth int) error {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list) // any other value has nothing
		for _, item := range list {
			if err := t.walkItem(name, item, depth); err != nil {
				return err
			}
		}
		return nil
	}
	var link schemas.Link
	if json.Unmarshal(raw, &link) == nil && link != "" && len(object) == 1 {
		return t.follow(name, link.String(), depth)
	}
	for _, member := range slices.Sorted(maps.Keys(object)) {
		if gpuPlaceWord.MatchString(member) && countWord.MatchString(member) {
			t.addCount(member, object[member], raw)
			continue
		}
		if err := t.walk(member, object[member], depth); err != nil {
			return err
		}
	}
	return nil
}

// walkItem looks at an item of a list, which may be a device itself.
func (t *oemTree) walkItem(name string, item json.RawMessage, depth int) error {
	var d oemDevice
	if _, err := decodeMembers(item, &d); err == nil && gpuPlaceWord.MatchString(name) && d.isNamed() {
		t.in(name).add(d, true)
		return nil
	}
	return t.walk(name, item, depth)
}

// in returns the tree with the list of this name, unless it has one.
func (t *oemTree) in(name string) *oemTree {
	if t.list != "" {
		return t
	}
	return &oemTree{crawl: t.crawl, list: "vendor's " + name, visited: t.visited}
}

// follow reads the resource behind a link if its name or its path says that devices are there.
func (t *oemTree) follow(name, uri string, depth int) error {
	last := path.Base(strings.TrimRight(uri, "/"))
	isDevices := devicesWord.MatchString(name) || devicesWord.MatchString(last)
	if !isDevices || noDevicesWord.MatchString(name) || noDevicesWord.MatchString(last) || !strings.HasPrefix(uri, "/") {
		return nil
	}
	return t.in(uri).read(uri, gpuPlaceWord.MatchString(name+" "+last), depth)
}

// read reads a device, or a resource that leads to devices. isGPUPlace is true where its path says that they are GPUs.
func (t *oemTree) read(uri string, isGPUPlace bool, depth int) error {
	key := strings.TrimRight(uri, "/")
	if t.visited[key] || depth > maxOEMDepth {
		return nil
	}
	t.visited[key] = true
	if len(t.visited) > maxOEMReads {
		t.addUnread(t.list)
		return nil
	}
	raw, err := t.fetch(uri)
	if err != nil {
		if isResourceError(err) {
			t.addUnread(t.list)
			return nil
		}
		return err
	}
	if raw == nil {
		return nil
	}
	return t.readText(raw, isGPUPlace, depth)
}

// readText reads the text of a device, of a collection, or of a resource that leads to devices.
func (t *oemTree) readText(raw []byte, isGPUPlace bool, depth int) error {
	var page struct {
		Members *[]json.RawMessage
		Count   *number `json:"Members@odata.count"`
		Next    word    `json:"Members@odata.nextLink"`
	}
	var d oemDevice
	if _, err := decodeMembers(raw, &page); err != nil {
		t.addUnread(t.list)
		return nil
	}
	if page.Members == nil {
		if _, err := decodeMembers(raw, &d); err == nil && d.isNamed() {
			t.add(d, isGPUPlace)
			return nil
		}
		return t.readPlace(raw, isGPUPlace, depth)
	}
	for _, member := range *page.Members {
		if err := t.readMember(member, isGPUPlace, depth); err != nil {
			return err
		}
	}
	if isShort := page.Count != nil && int(*page.Count) > len(*page.Members) && page.Next == ""; isShort && isGPUPlace {
		t.addUnread(t.list)
	}
	if page.Next == "" {
		return nil
	}
	return t.read(string(page.Next), isGPUPlace, depth)
}

// readMember reads a member of a collection, which is a link or the device itself.
func (t *oemTree) readMember(member json.RawMessage, isGPUPlace bool, depth int) error {
	var whole oemDevice
	if _, err := decodeMembers(member, &whole); err == nil && whole.isNamed() {
		t.add(whole, isGPUPlace)
		return nil
	}
	var link schemas.Link
	_ = json.Unmarshal(member, &link) // one that is no link has nothing
	if link == "" {
		return nil
	}
	return t.read(link.String(), isGPUPlace, depth)
}

// readPlace reads a resource that is no device and no collection. A place of GPUs in which nothing can be told leaves it open whether there are any.
func (t *oemTree) readPlace(raw []byte, isGPUPlace bool, depth int) error {
	var place struct{ Status status }
	_, _ = decodeMembers(raw, &place) // it has been decoded by the caller
	known := len(t.inventory.PCIDevices)
	if err := t.walk("", raw, depth+1); err != nil {
		return err
	}
	if isGPUPlace && len(t.inventory.PCIDevices) == known && place.Status.State != stateAbsent {
		t.addUnread(t.list)
	}
	return nil
}

// add adds the device if it is a GPU, or may be one.
func (t *oemTree) add(d oemDevice, isGPUPlace bool) {
	named, isTyped := d.device(), gpuTypeWord.MatchString(d.kind())
	if d.isNoGPU(named) || !isTyped && !isGPUPlace && named.vendorID() == "" {
		return
	}
	vendor, id, _ := normalizeIDs(d.VendorID, d.DeviceID)
	vendor = cmp.Or(vendor, named.vendorID())
	if vendor != "" && vendor != vendorNVIDIA && vendor != vendorAMD {
		return // no GPU of a vendor whose GPUs are counted
	}
	found := hardware.PCIDevice{List: t.list, VendorID: vendor, DeviceID: id, Model: named.name()}
	if isTyped || isGPUPlace {
		found.Class = classDisplay
	}
	t.inventory.PCIDevices = append(t.inventory.PCIDevices, found)
}

// isNoGPU reports whether the device is absent, or something else by its type or its names.
func (d oemDevice) isNoGPU(named pciDevice) bool {
	kind, text := d.kind(), strings.Join([]string{d.ID, named.Manufacturer, named.name()}, " ")
	isOtherKind := kind != "" && !gpuTypeWord.MatchString(kind) && !isPlaceholder(kind)
	return d.Status.State == stateAbsent || isOtherKind || otherWord.MatchString(text) || ownGraphicWord.MatchString(text)
}

// addCount adds as many GPUs as a member says that there are, which may be a number, a text or null. Their model may be beside it.
func (t *oemTree) addCount(name string, raw, beside json.RawMessage) {
	list := cmp.Or(t.list, "vendor's") + " " + name
	var count number
	if string(raw) == "null" || json.Unmarshal(raw, &count) != nil {
		t.addUnread(list)
		return
	}
	var d oemDevice
	_, _ = decodeMembers(beside, &d) // what cannot be decoded is not known
	named := d.device()
	for range int(min(max(count, 0), maxGPUs)) {
		t.inventory.PCIDevices = append(t.inventory.PCIDevices, hardware.PCIDevice{List: list, VendorID: named.vendorID(), Class: classDisplay, Model: named.name()})
	}
}
