package redfish

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// system is a ComputerSystem with the members that gofish does not export.
type system struct {
	*schemas.ComputerSystem
	links systemLinks
}

// systemLinks are members of a ComputerSystem (DSP0268) that gofish does not export, or reads only in goroutines.
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

// readSystem reads the system at the path.
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
	// null and any other object can be decoded too.
	if s.PowerState == "" && !s.isControllable() {
		return nil, fmt.Errorf("%w: %s has no members of a ComputerSystem", errMalformed, uri)
	}
	// The id that the BMC reports is not used for later requests, because some BMCs leave it out or report another path.
	s.ODataID = uri
	return s, nil
}

// findSystem returns the system of the server from the Systems collection.
func (c *conn) findSystem() (*system, error) {
	const op = "find the server's system"
	collection := c.login.root.Systems.String()
	if collection == "" {
		collection = "/redfish/v1/Systems"
	}
	collectionMembers, err := c.collectionMembers(collection)
	if err != nil {
		return nil, err
	}
	var candidates []string
	for _, member := range collectionMembers {
		// NVIDIA's HGX baseboard is a ComputerSystem of type Physical with a reset action, and is not the server.
		if !strings.HasPrefix(path.Base(member), "HGX_") {
			candidates = append(candidates, member)
		}
	}
	if len(candidates) == 1 {
		return c.readSystem(candidates[0])
	}
	var matches []*system
	for _, candidate := range candidates {
		s, err := c.readSystem(candidate)
		if err != nil {
			return nil, err
		}
		if (s.SystemType == "" || s.SystemType == schemas.PhysicalSystemType) && s.isControllable() {
			matches = append(matches, s)
		}
	}
	if len(matches) == 1 {
		return matches[0], nil
	}
	return nil, hardware.Errorf(hardware.Invalid, op, c.bmc.endpoint.Address,
		"%d of the systems [%s] can be powered and booted, expected 1: put the path of the server's system into the BMC address",
		len(matches), strings.Join(collectionMembers, " "))
}

// collectionMembers returns the members of a collection from all its pages. gofish's readers are not used, see the package comment.
func (c *conn) collectionMembers(uri string) ([]string, error) {
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
