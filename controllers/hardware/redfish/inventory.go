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

// Inventory implements hardware.BMC. A collection that is missing, not loaded yet or refused leaves its member empty; a BMC
// that stops answering is an error. SystemUUID stays empty: the UUID that a BMC reports is compared with nothing.
func (b *bmc) Inventory(ctx context.Context) (hardware.Inventory, error) {
	var inventory hardware.Inventory
	err := b.do(ctx, "read inventory", func(c *conn) error {
		inventory = hardware.Inventory{} // a second run after a new login starts afresh
		s, err := c.system()
		if err != nil {
			return err
		}
		inventory.Manufacturer = strings.TrimSpace(s.Manufacturer)
		inventory.Model = strings.TrimSpace(s.Model)
		inventory.SerialNumber = strings.TrimSpace(s.SerialNumber)
		inventory.BIOSVersion = s.BiosVersion
		for _, read := range []func(*system, *hardware.Inventory) error{c.processors, c.memory, c.nics, c.disks, c.pciDevices} {
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

// optional drops a failure that only means that this resource cannot be had now, and keeps one that would befall every
// further request.
func (c *conn) optional(err error, uri string) error {
	if err == nil || !isResourceError(err) {
		return err
	}
	c.bmc.client.options.Log.Debug("BMC resource left out", "bmc", c.bmc.endpoint.Address, "path", uri, "status", statusOf(err))
	return nil
}

// each reads the members of a collection one after the other, those that can be read.
func each[T any, PT schemas.GenericSchemaObjectPointer[T]](c *conn, collection string, visit func(*T)) error {
	if collection == "" {
		return nil
	}
	members, err := c.members(collection)
	if err != nil {
		return c.optional(err, collection)
	}
	return eachOf[T, PT](c, members, visit)
}

func eachOf[T any, PT schemas.GenericSchemaObjectPointer[T]](c *conn, uris []string, visit func(*T)) error {
	for _, uri := range uris {
		if uri == "" {
			continue
		}
		item, err := schemas.GetObject[T, PT](c.api, uri)
		if err == nil {
			visit(item)
		} else if err := c.optional(err, uri); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) processors(s *system, inventory *hardware.Inventory) error {
	inventory.CPUModel = strings.TrimSpace(s.ProcessorSummary.Model)
	threads := 0
	err := each(c, s.links.Processors.String(), func(p *schemas.Processor) {
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

// architecture is in Go's and Kubernetes' words.
func architecture(p *schemas.Processor) string {
	switch string(p.InstructionSet) {
	case "x86-64":
		return "amd64"
	case "ARM-A64":
		return "arm64"
	}
	return ""
}

func (c *conn) memory(s *system, inventory *hardware.Inventory) error {
	if gib := s.MemorySummary.TotalSystemMemoryGiB; gib != nil && *gib > 0 && *gib < 1<<20 {
		inventory.MemoryBytes = int64(*gib * (1 << 30))
		return nil
	}
	return each(c, s.links.Memory.String(), func(m *schemas.Memory) {
		if m.CapacityMiB != nil && *m.CapacityMiB > 0 && *m.CapacityMiB < 1<<30 {
			inventory.MemoryBytes += int64(*m.CapacityMiB) << 20
		}
	})
}

// nics are known by their MAC alone: iLO 6 gives interfaces other ids at every reboot.
func (c *conn) nics(s *system, inventory *hardware.Inventory) error {
	err := each(c, s.links.EthernetInterfaces.String(), func(e *schemas.EthernetInterface) {
		mac, err := net.ParseMAC(cmp.Or(e.PermanentMACAddress, e.MACAddress))
		if err != nil || len(mac) != 6 || mac.String() == "00:00:00:00:00:00" {
			return // a port without an address yet cannot be told from others
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

func (c *conn) disks(s *system, inventory *hardware.Inventory) error {
	var drives []string
	err := each(c, s.links.Storage.String(), func(storage *schemas.Storage) {
		var links struct{ Drives schemas.Links }
		decode(storage.RawData, &links)
		drives = append(drives, links.Drives.ToStrings()...)
	})
	if err != nil {
		return err
	}
	err = eachOf(c, drives, func(d *schemas.Drive) {
		if d.CapacityBytes != nil && *d.CapacityBytes > 0 {
			inventory.Disks = append(inventory.Disks, disk(d))
		}
	})
	if err != nil || len(inventory.Disks) > 0 {
		return err
	}
	return each(c, s.links.SimpleStorage.String(), func(simple *schemas.SimpleStorage) {
		for _, device := range simple.Devices {
			if device.CapacityBytes != nil && *device.CapacityBytes > 0 {
				inventory.Disks = append(inventory.Disks, hardware.Disk{Model: strings.TrimSpace(device.Model), SizeBytes: int64(*device.CapacityBytes)})
			}
		}
	})
}

func disk(d *schemas.Drive) hardware.Disk {
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
