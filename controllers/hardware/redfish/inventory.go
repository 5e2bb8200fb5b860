package redfish

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Inventory implements hardware.BMC. When a collection is missing, not loaded yet or refused, its field is empty. When the BMC stops
// responding, Inventory fails. SystemUUID is always empty, because the UUID that a BMC reports is never compared.
func (b *bmc) Inventory(ctx context.Context) (hardware.Inventory, error) {
	var inventory hardware.Inventory
	err := b.call(ctx, "read inventory", func(c *conn) error {
		inventory = hardware.Inventory{} // the function runs a second time after a new login
		s, err := c.serverSystem()
		if err != nil {
			return err
		}
		inventory.Manufacturer = strings.TrimSpace(s.Manufacturer)
		inventory.Model = strings.TrimSpace(s.Model)
		inventory.SerialNumber = strings.TrimSpace(s.SerialNumber)
		inventory.BIOSVersion = s.BiosVersion
		for _, read := range []func(*system, *hardware.Inventory) error{c.readProcessors, c.readMemory, c.readNICs, c.readDisks, c.readPCIDevices} {
			if err := read(s, &inventory); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return hardware.Inventory{}, err
	}
	return inventory, nil
}

// skipResourceError returns nil for a failure of this resource alone, and the error when every further request would fail too.
func (c *conn) skipResourceError(err error, uri string) error {
	if err == nil || !isResourceError(err) {
		return err
	}
	c.bmc.client.options.Log.Debug("BMC resource left out", "bmc", c.bmc.endpoint.Address, "path", uri, "status", statusOf(err))
	return nil
}

// forEachMember reads the members of a collection one after the other and calls visit with those that can be read.
func forEachMember[T any, PT schemas.GenericSchemaObjectPointer[T]](c *conn, collection string, visit func(*T)) error {
	if collection == "" {
		return nil
	}
	collectionMembers, err := c.collectionMembers(collection)
	if err != nil {
		return c.skipResourceError(err, collection)
	}
	return forEachResource[T, PT](c, collectionMembers, visit)
}

// forEachResource reads the resources one after the other and calls visit with those that can be read.
func forEachResource[T any, PT schemas.GenericSchemaObjectPointer[T]](c *conn, uris []string, visit func(*T)) error {
	for _, uri := range uris {
		if uri == "" {
			continue
		}
		item, err := schemas.GetObject[T, PT](c.api, uri)
		if err == nil {
			visit(item)
		} else if err := c.skipResourceError(err, uri); err != nil {
			return err
		}
	}
	return nil
}

// readProcessors sets CPUModel, CPUThreads and Architecture.
func (c *conn) readProcessors(s *system, inventory *hardware.Inventory) error {
	inventory.CPUModel = strings.TrimSpace(s.ProcessorSummary.Model)
	threads := 0
	err := forEachMember(c, s.links.Processors.String(), func(p *schemas.Processor) {
		if p.ProcessorType != "" && p.ProcessorType != schemas.CPUProcessorType || p.Status.State == schemas.AbsentState {
			return
		}
		if p.TotalThreads != nil && *p.TotalThreads > 0 {
			threads += *p.TotalThreads
		}
		inventory.CPUModel = cmp.Or(inventory.CPUModel, strings.TrimSpace(p.Model))
		inventory.Architecture = cmp.Or(inventory.Architecture, architecture(p))
	})
	if summary := s.ProcessorSummary.LogicalProcessorCount; threads == 0 && summary != nil && *summary < 1<<20 {
		threads = int(*summary)
	}
	inventory.CPUThreads = threads
	return err
}

// architecture returns the architecture as Go and Kubernetes name it.
func architecture(p *schemas.Processor) string {
	switch string(p.InstructionSet) {
	case "x86-64":
		return "amd64"
	case "ARM-A64":
		return "arm64"
	}
	return ""
}

// readMemory sets MemoryBytes, from the summary or from the modules.
func (c *conn) readMemory(s *system, inventory *hardware.Inventory) error {
	if gib := s.MemorySummary.TotalSystemMemoryGiB; gib != nil && *gib > 0 && *gib < 1<<20 {
		inventory.MemoryBytes = int64(*gib * (1 << 30))
		return nil
	}
	return forEachMember(c, s.links.Memory.String(), func(m *schemas.Memory) {
		if m.CapacityMiB != nil && *m.CapacityMiB > 0 && *m.CapacityMiB < 1<<30 {
			inventory.MemoryBytes += int64(*m.CapacityMiB) << 20
		}
	})
}

// readNICs reads the network interfaces. They are identified by their MAC address, because iLO 6 changes their ids at every reboot.
func (c *conn) readNICs(s *system, inventory *hardware.Inventory) error {
	err := forEachMember(c, s.links.EthernetInterfaces.String(), func(e *schemas.EthernetInterface) {
		mac, err := net.ParseMAC(cmp.Or(e.PermanentMACAddress, e.MACAddress))
		if err != nil || len(mac) != 6 || mac.String() == "00:00:00:00:00:00" {
			return // a port without an address cannot be identified
		}
		nic := hardware.NIC{Name: e.ID, MAC: mac.String(), Up: e.LinkStatus == schemas.LinkUpLinkStatus}
		if e.SpeedMbps != nil && *e.SpeedMbps > 0 {
			nic.SpeedMbps = *e.SpeedMbps
		}
		inventory.NICs = append(inventory.NICs, nic)
	})
	slices.SortStableFunc(inventory.NICs, func(a, b hardware.NIC) int { return cmp.Compare(a.MAC, b.MAC) })
	inventory.NICs = slices.CompactFunc(inventory.NICs, func(a, b hardware.NIC) bool { return a.MAC == b.MAC })
	return err
}

// readDisks sets Disks, from the drives of all storage controllers, otherwise from SimpleStorage.
func (c *conn) readDisks(s *system, inventory *hardware.Inventory) error {
	var drives []string
	err := forEachMember(c, s.links.Storage.String(), func(storage *schemas.Storage) {
		var links struct{ Drives schemas.Links }
		decodeExtra(storage.RawData, &links)
		drives = append(drives, links.Drives.ToStrings()...)
	})
	if err != nil {
		return err
	}
	err = forEachResource(c, drives, func(d *schemas.Drive) {
		if d.CapacityBytes != nil && *d.CapacityBytes > 0 {
			inventory.Disks = append(inventory.Disks, toDisk(d))
		}
	})
	if err != nil || len(inventory.Disks) > 0 {
		return err
	}
	return forEachMember(c, s.links.SimpleStorage.String(), func(simple *schemas.SimpleStorage) {
		for _, device := range simple.Devices {
			if device.CapacityBytes != nil && *device.CapacityBytes > 0 {
				inventory.Disks = append(inventory.Disks, hardware.Disk{Model: strings.TrimSpace(device.Model), SizeBytes: int64(*device.CapacityBytes)})
			}
		}
	})
}

func toDisk(d *schemas.Drive) hardware.Disk {
	result := hardware.Disk{
		Model: strings.TrimSpace(d.Model), SerialNumber: strings.TrimSpace(d.SerialNumber),
		SizeBytes: int64(*d.CapacityBytes), Rotational: d.MediaType == schemas.HDDMediaType,
	}
	for _, identifier := range d.Identifiers {
		if format := string(identifier.DurableNameFormat); format == "NAA" || format == "EUI" {
			result.WWN = strings.ToLower(identifier.DurableName)
		}
	}
	return result
}
