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
	Boot       map[string]json.RawMessage
	Processors schemas.Link
	Links      struct{ Chassis schemas.Links }
}

// isBaseboard reports whether the system or the chassis at the path is that of an NVIDIA HGX board. Some of them have a reset action and a boot
// override, as servers have.
func isBaseboard(uri string) bool {
	return strings.HasPrefix(path.Base(strings.TrimRight(uri, "/")), "HGX_")
}

// isServer reports whether the system can be powered and booted as a server of its own.
func (o otherSystem) isServer(uri string) bool {
	return o.Actions.Reset.Target != "" && len(o.Boot) > 0 && !isBaseboard(uri)
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
	if !isBaseboard(uri) && !isShared && (!w.isAlone || o.isServer(uri)) {
		return nil
	}
	processors, err := readMembers[processor](w, o.Processors.String())
	if w.isSilentWhileOff(uri, err) {
		w.addUnread(uri)
		return nil
	}
	w.addGPUProcessors(uri, processors)
	return err
}

// chassis is a Chassis with PCI devices, or one that holds such chassis.
type chassis struct {
	Manufacturer string
	Model        string
	PCIeDevices  schemas.Link
	Links        struct {
		PCIeDevices schemas.Links
		Contains    schemas.Links
	}
}

// readChassis adds the devices in the chassis, and in the chassis within them, to a list. A chassis that is a board of GPUs, and in which no GPU can
// be found, leaves it open whether the server has any.
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
			if vendorOf(c.Manufacturer+" "+c.Model) != "" {
				boards = append(boards, uri)
			}
		}
	}
	if !w.hasGPU() {
		for _, uri := range boards {
			w.addUnread(uri)
		}
	}
	return nil
}

// readChassisDevices adds the devices in the chassis to a list.
func (w *crawl) readChassisDevices(list string, c chassis) error {
	if c.PCIeDevices == "" {
		return w.readDevices(list, c.Links.PCIeDevices.ToStrings())
	}
	devices, err := readMembers[pciDevice](w, c.PCIeDevices.String())
	if err != nil {
		return err
	}
	return w.addDevices(list, devices)
}
