package redfish

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// system is a ComputerSystem with the members that gofish does not export.
type system struct {
	*schemas.ComputerSystem
	links systemLinks
	// raw is the text of the resource.
	raw []byte
}

// systemLinks are members of a ComputerSystem (DSP0268) that gofish does not export, or reads only in goroutines.
type systemLinks struct {
	Actions struct {
		Reset struct {
			Target     string   `json:"target"`
			ActionInfo string   `json:"@Redfish.ActionInfo"`
			Allowable  looseArg `json:"ResetType@Redfish.AllowableValues"`
		} `json:"#ComputerSystem.Reset"`
	}
	Boot     map[string]json.RawMessage
	Settings struct {
		SettingsObject schemas.Link
	} `json:"@Redfish.Settings"`
	EthernetInterfaces schemas.Link
	Processors         schemas.Link
	Memory             schemas.Link
	Storage            schemas.Link
	SimpleStorage      schemas.Link
	VirtualMedia       schemas.Link
	SecureBoot         schemas.Link
	PCIeDevices        linked
	PCIeFunctions      linked
	Links              struct {
		Chassis   schemas.Links
		ManagedBy schemas.Links
	}
}

// isControllable reports whether this system has a reset action and a boot override. A second system such as an HGX baseboard has not.
func (s *system) isControllable() bool {
	return s.links.Actions.Reset.Target != "" && len(s.links.Boot) > 0
}

// serverSystem reads the ComputerSystem of the server. The first call of a session finds it.
func (c *conn) serverSystem() (*system, error) {
	if p := c.bmc.endpoint.SystemPath; p != "" {
		return c.readSystem(p)
	}
	c.bmc.client.mu.Lock()
	known := c.login.system
	c.bmc.client.mu.Unlock()
	if known != "" {
		return c.readSystem(known)
	}
	found, err := c.findSystem()
	if err != nil {
		return nil, err
	}
	c.bmc.client.mu.Lock()
	c.login.system = found.ODataID
	c.bmc.client.mu.Unlock()
	return found, nil
}

// readSystem reads the system at the path. A member of an unexpected type is left out, so that it costs neither power nor boot override.
func (c *conn) readSystem(uri string) (*system, error) {
	raw, header, err := readRaw(c.api, uri)
	if err != nil {
		return nil, err
	}
	s := &system{ComputerSystem: &schemas.ComputerSystem{}, raw: raw}
	if err := c.decode(uri, raw, &s.links); err != nil {
		return nil, err
	}
	if raw, err = c.withoutMistyped(uri, raw); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, s.ComputerSystem); err != nil {
		return nil, err
	}
	if etag := header.Get("ETag"); etag != "" && s.GetETag() == "" {
		s.SetETag(etag)
	}
	s.SetClient(c.api)
	// null and any other object can be decoded too.
	if s.PowerState == "" && !s.isControllable() {
		return nil, fmt.Errorf("%w: %s has no members of a ComputerSystem", errMalformed, uri)
	}
	// The id that the BMC reports is not used for later requests, because some BMCs leave it out or report another path.
	s.ODataID = uri
	return s, nil
}

// withoutMistyped returns the document of a ComputerSystem without the members that gofish cannot decode.
func (c *conn) withoutMistyped(uri string, raw []byte) ([]byte, error) {
	if json.Unmarshal(raw, &schemas.ComputerSystem{}) == nil {
		return raw, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	for name, member := range object {
		alone, err := json.Marshal(map[string]json.RawMessage{name: member})
		if err == nil {
			err = json.Unmarshal(alone, &schemas.ComputerSystem{})
		}
		if err != nil {
			c.logMistyped(uri, memberError{name, err})
			delete(object, name)
		}
	}
	return json.Marshal(object)
}

// findSystem returns the system of the server from the Systems collection.
func (c *conn) findSystem() (*system, error) {
	const op = "find the server's system"
	link := c.login.root.Systems.String()
	members, err := c.collectionMembers(cmp.Or(link, "/redfish/v1/Systems"))
	if link == "" && isMissing(err) {
		return nil, hardware.Errorf(hardware.Busy, op, c.bmc.endpoint.Address, "the service root has no link to systems: the BMC is not ready yet, or must be restarted")
	}
	if err != nil {
		return nil, err
	}
	// NVIDIA's HGX baseboard is a ComputerSystem of type Physical with a reset action, and is not the server.
	candidates := slices.DeleteFunc(slices.Clone(members), func(member string) bool { return isBaseboard(member) })
	if len(candidates) == 0 {
		return nil, hardware.Errorf(hardware.Busy, op, c.bmc.endpoint.Address,
			"the BMC lists the systems [%s], and none of them is the server: it is not ready yet", strings.Join(members, " "))
	}
	matches, err := c.readCandidates(candidates)
	if err != nil {
		return nil, err
	}
	if len(matches) == 1 {
		if len(members) > 1 {
			c.bmc.client.options.Log.Info("The BMC has several systems, and this one is the server", "bmc", c.bmc.endpoint.Address, "path", matches[0].ODataID, "systems", members)
		}
		return matches[0], nil
	}
	return nil, hardware.Errorf(hardware.Invalid, op, c.bmc.endpoint.Address,
		"%d of the systems [%s] can be powered and booted, expected 1%s: put the path of the server's system into the BMC address",
		len(matches), strings.Join(members, " "), describeServers(matches))
}

// readCandidates returns the systems that may be the server. The only one is it, whatever it can do.
func (c *conn) readCandidates(uris []string) ([]*system, error) {
	if len(uris) > 1 {
		return c.readServers(uris)
	}
	s, err := c.readSystem(uris[0])
	return []*system{s}, err
}

// maxNamedServers is how many systems an error names.
const maxNamedServers = 8

// describeServers says by what a person can tell the systems apart.
func describeServers(servers []*system) string {
	var names []string
	for _, s := range servers[:min(len(servers), maxNamedServers)] {
		names = append(names, strings.Join(slices.DeleteFunc([]string{
			s.ODataID, s.Name, s.Manufacturer, s.Model, "serial " + cmp.Or(s.SerialNumber, "unknown"), "host name " + cmp.Or(s.HostName, "unknown"), "power " + string(s.PowerState),
		}, func(text string) bool { return text == "" }), ", "))
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, "; ") + ")"
}

// readServers returns the systems that can be powered and booted, without boards of GPUs where there are others. Members that the BMC lists and does not have are left out.
func (c *conn) readServers(uris []string) ([]*system, error) {
	var servers []*system
	for _, uri := range uris {
		s, err := c.readSystem(uri)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		isPhysical := s.SystemType == "" || s.SystemType == schemas.PhysicalSystemType
		if isPhysical && s.isControllable() {
			servers = append(servers, s)
		}
	}
	if hosts := slices.DeleteFunc(slices.Clone(servers), func(s *system) bool { return isBaseboard(s.ODataID, s.Name, s.Model) }); len(hosts) > 0 {
		return hosts, nil
	}
	return servers, nil
}

// skipResourceError returns nil for a failure of this resource alone, and the error when every further request would fail too.
func (c *conn) skipResourceError(err error, uri string) error {
	if err == nil || !isResourceError(err) {
		return err
	}
	c.bmc.client.options.Log.Debug("BMC resource left out", "bmc", c.bmc.endpoint.Address, "path", uri, "status", statusOf(err))
	return nil
}
