package redfish

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"
)

// otherSystem is a ComputerSystem at the BMC beside the server: an HGX baseboard, or another server.
type otherSystem struct {
	Actions struct {
		Reset struct {
			Target string `json:"target"`
		} `json:"#ComputerSystem.Reset"`
	}
	Name, Manufacturer, Model string

	Boot       map[string]json.RawMessage
	Processors schemas.Link
	Memory     schemas.Link
	// PCIeDevices are read where the board has no GPU among its processors.
	PCIeDevices linked
	Links       struct{ Chassis schemas.Links }
}

// isBaseboard reports whether the system or the chassis at the path, with these names, is that of a board of GPUs such as NVIDIA's HGX. Some of them have a
// reset action and a boot override, as servers have.
func isBaseboard(uri string, names ...string) bool {
	base := path.Base(strings.TrimRight(uri, "/"))
	return strings.HasPrefix(base, "HGX_") || slices.ContainsFunc(append(names, base), boardWord.MatchString)
}

// isBaseboard reports whether the system is that of a board of GPUs.
func (o otherSystem) isBaseboard(uri string) bool { return isBaseboard(uri, o.Name, o.Model) }

// gpuVendor returns who makes the GPUs of the board; "" when nobody can tell. HGX is NVIDIA's name.
func (o otherSystem) gpuVendor(uri string) string {
	names := strings.Join([]string{o.Manufacturer, o.Name, o.Model, path.Base(strings.TrimRight(uri, "/"))}, " ")
	if vendor := vendorOf(names); vendor != "" {
		return vendor
	}
	if strings.Contains(strings.ToUpper(names), "HGX") {
		return vendorNVIDIA
	}
	return ""
}

// isServer reports whether the system can be powered and booted as a server of its own.
func (o otherSystem) isServer(uri string) bool {
	return o.Actions.Reset.Target != "" && len(o.Boot) > 0 && !o.isBaseboard(uri)
}

// isSilentWhileOff reports whether the failure is that of a baseboard which has no power while the server is off: a DGX answers 503 for it until the
// server is on. Without it: the inspection of a server that is off repeats the request until its deadline, and fails.
func (w *crawl) isSilentWhileOff(uri string, err error) bool {
	return w.isOff && isBaseboard(uri) && statusOf(err) >= http.StatusInternalServerError
}

// readBaseboards adds the GPUs among the processors of the systems that are parts of the server: HGX baseboards, and others that share a chassis with
// it or that cannot be powered by themselves. Where the BMC manages other servers too, only a shared chassis makes a system a part of this one.
func (w *crawl) readBaseboards(s *system) error {
	all, err := w.members(cmp.Or(w.login.root.Systems.String(), "/redfish/v1/Systems"))
	if err != nil && !isMissing(err) {
		return err
	}
	w.isAlone = true
	others := map[string]otherSystem{}
	for _, uri := range all {
		if uri == strings.TrimRight(s.ODataID, "/") {
			continue
		}
		o, err := readResource[otherSystem](w, uri)
		switch {
		case w.isSilentWhileOff(uri, err):
			w.addUnread(uri)
		case err != nil:
			return err
		case o != nil:
			others[uri] = *o
			w.isAlone = w.isAlone && !o.isServer(uri)
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(others)) {
		if err := w.readBaseboard(s, uri, others[uri]); err != nil {
			return err
		}
	}
	return nil
}

// readBaseboard adds the GPUs among the processors of another system, if that is a part of the server.
func (w *crawl) readBaseboard(s *system, uri string, o otherSystem) error {
	own := s.links.Links.Chassis.ToStrings()
	isShared := slices.ContainsFunc(o.Links.Chassis.ToStrings(), func(chassis string) bool { return slices.Contains(own, chassis) })
	if !o.isBaseboard(uri) && !isShared && (!w.isAlone || o.isServer(uri)) {
		return nil
	}
	processors, err := readMembers[processor](w, o.Processors.String())
	if w.isSilentWhileOff(uri, err) {
		w.addUnread(uri)
		return nil
	}
	if err != nil {
		return err
	}
	w.addGPUProcessors(uri, processors, o.isBaseboard(uri), o.gpuVendor(uri))
	w.addMissing(uri, o.Processors.String())
	if !w.hasGPU(uri) && !o.PCIeDevices.isEmpty() {
		if err := w.readDevices(uri+"/PCIeDevices", o.PCIeDevices); err != nil {
			return err
		}
	}
	return w.readHostParts(o, processors)
}

// readHostParts sets what the server's own system does not tell of its CPUs and its memory from a system that is a part of it. The CPUs of a Grace server are
// on the board of its GPUs, and some firmware has them and their memory there.
func (w *crawl) readHostParts(o otherSystem, processors []processor) error {
	cpus := slices.DeleteFunc(slices.Clone(processors), func(p processor) bool { return !p.isTyped("CPU") || p.isAbsent() })
	if len(cpus) == 0 {
		return nil
	}
	if w.inventory.CPUThreads == 0 {
		w.addCPUs(cpus, w.missing[o.Processors.String()] > 0)
	}
	if w.inventory.MemoryBytes == 0 {
		return w.readMemory(o.Memory.String())
	}
	return nil
}

// chassis is a Chassis with PCI devices, or one that holds such chassis.
type chassis struct {
	Manufacturer string
	Model        string
	Name         string
	PCIeDevices  linked
	// Devices, Oem and Links.Oem may lead to devices that are no PCIeDevices.
	Devices json.RawMessage
	Oem     json.RawMessage
	Links   struct {
		PCIeDevices linked
		Contains    schemas.Links
		Oem         json.RawMessage
	}
}

// isGPUBoard reports whether the chassis at the path is a GPU, or a board of them, by its maker or its name.
func (c chassis) isGPUBoard(uri string) bool {
	names := c.Name + " " + path.Base(strings.TrimRight(uri, "/"))
	isNamed := gpuWord.MatchString(names) || isBaseboard(uri, c.Name, c.Model)
	return vendorOf(c.Manufacturer+" "+c.Model) != "" || isNamed && !otherWord.MatchString(names)
}

// readChassis adds the devices in the chassis, and in the chassis within them, to a list. It keeps the chassis that
// are boards of GPUs.
func (w *crawl) readChassis(list string, uris []string, visited map[string]bool) error {
	var boards []string
	for len(uris) > 0 {
		uri := uris[0]
		uris = uris[1:]
		key := strings.TrimRight(uri, "/")
		if visited[key] {
			continue
		}
		visited[key] = true
		c, err := readResource[chassis](w, uri)
		if err == nil && c != nil {
			err = w.readChassisDevices(list, *c)
		}
		switch {
		case w.isSilentWhileOff(uri, err):
			w.addUnread(uri)
		case err != nil:
			return err
		case c != nil:
			if w.isAlone {
				uris = append(uris, c.Links.Contains.ToStrings()...)
			}
			if w.keepElsewhere(c.Oem, c.Links.Oem); len(c.Devices) > 0 {
				w.keepElsewhere(json.RawMessage(`{"Devices":` + string(c.Devices) + `}`))
			}
			if c.isGPUBoard(uri) {
				boards = append(boards, uri)
			}
		}
	}
	w.boards = append(w.boards, boards...)
	return nil
}

// readChassisDevices adds the devices in the chassis to a list.
func (w *crawl) readChassisDevices(list string, c chassis) error {
	at := c.PCIeDevices
	if at.isEmpty() {
		at = c.Links.PCIeDevices
	}
	return w.readDevices(list, at)
}
