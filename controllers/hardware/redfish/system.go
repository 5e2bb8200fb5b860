package redfish

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// system is a ComputerSystem with the members that gofish keeps to itself.
type system struct {
	*schemas.ComputerSystem
	links systemLinks
}

// systemLinks are members of a ComputerSystem (DSP0268) that gofish does not export, or reads only through goroutines.
type systemLinks struct {
	Actions struct {
		Reset struct {
			Target     string   `json:"target"`
			ActionInfo string   `json:"@Redfish.ActionInfo"`
			Allowable  []string `json:"ResetType@Redfish.AllowableValues"`
		} `json:"#ComputerSystem.Reset"`
	}
	Boot               map[string]json.RawMessage
	EthernetInterfaces schemas.Link
	Processors         schemas.Link
	Memory             schemas.Link
	Storage            schemas.Link
	SimpleStorage      schemas.Link
	VirtualMedia       schemas.Link
	PCIeDevices        schemas.Links
	PCIeFunctions      schemas.Links
	Links              struct {
		Chassis   schemas.Links
		ManagedBy schemas.Links
	}
}

// controllable tells whether this system can be powered and booted: what a second system such as an HGX baseboard lacks.
func (s *system) controllable() bool {
	return s.links.Actions.Reset.Target != "" && len(s.links.Boot) > 0
}

// system reads the server's ComputerSystem, which is found on the first call of a session.
func (c *conn) system() (*system, error) {
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

func (c *conn) readSystem(uri string) (*system, error) {
	read, err := schemas.GetObject[schemas.ComputerSystem](c.api, uri)
	if err != nil {
		return nil, err
	}
	s := &system{ComputerSystem: read}
	if len(read.RawData) > 0 {
		if err := json.Unmarshal(read.RawData, &s.links); err != nil {
			return nil, err
		}
	}
	// null parses too, and so does any object that is something else.
	if s.PowerState == "" && !s.controllable() {
		return nil, fmt.Errorf("%w: %s has no members of a ComputerSystem", errMalformed, uri)
	}
	// What the BMC calls itself is not trusted for later requests: some leave it out or name another host's form.
	s.ODataID = uri
	return s, nil
}

// findSystem chooses among the members of the Systems collection.
func (c *conn) findSystem() (*system, error) {
	const op = "find the server's system"
	collection := c.login.root.Systems.String()
	if collection == "" {
		collection = "/redfish/v1/Systems"
	}
	members, err := c.members(collection)
	if err != nil {
		return nil, err
	}
	var candidates []string
	for _, member := range members {
		// NVIDIA's HGX baseboard is a ComputerSystem of type Physical with a reset of its own, and is not the server.
		if !strings.HasPrefix(path.Base(member), "HGX_") {
			candidates = append(candidates, member)
		}
	}
	if len(candidates) == 1 {
		return c.readSystem(candidates[0])
	}
	var fit []*system
	for _, candidate := range candidates {
		s, err := c.readSystem(candidate)
		if err != nil {
			return nil, err
		}
		if (s.SystemType == "" || s.SystemType == schemas.PhysicalSystemType) && s.controllable() {
			fit = append(fit, s)
		}
	}
	if len(fit) == 1 {
		return fit[0], nil
	}
	return nil, hardware.Errorf(hardware.Invalid, op, c.bmc.endpoint.Address,
		"%d of the systems [%s] can be powered and booted, expected 1: put the path of the server's system into the BMC address",
		len(fit), strings.Join(members, " "))
}

// members lists a collection, following its pages. gofish's own readers are not used, see the package comment.
func (c *conn) members(uri string) ([]string, error) {
	var all []string
	for uri != "" {
		page, err := schemas.GetCollection(c.api, uri)
		if err != nil {
			return nil, err
		}
		for _, link := range page.ItemLinks {
			if link = strings.TrimRight(link, "/"); strings.HasPrefix(link, "/") {
				all = append(all, link)
			}
		}
		uri = page.MembersNextLink
	}
	return all, nil
}
