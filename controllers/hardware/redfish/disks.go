package redfish

import (
	"regexp"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// minDisk is the size in bytes from which a drive is a disk. A BMC's virtual CD has 2048 bytes, which is one sector.
const minDisk = 1 << 20

// virtualDrive matches the model or the name of a drive that the BMC emulates.
var virtualDrive = regexp.MustCompile(`(?i)\bvirtual[ _-]*(cd|dvd|hdisk|floppy|media|usb|flash)`)

// drive is a Drive, a device of SimpleStorage, or a drive of HPE's SmartStorage, which counts in MiB.
type drive struct {
	Name          string
	Model         string
	SerialNumber  string
	CapacityBytes number
	CapacityMiB   number
	MediaType     string
	Identifiers   []durableName
	Status        status
	Links         struct{ Volumes schemas.Links }
}

// durableName is one of Redfish's Identifiers.
type durableName struct{ DurableName, DurableNameFormat string }

// wwnOf returns the last NAA or EUI identifier in lower case, or "".
func wwnOf(names []durableName) string {
	wwn := ""
	for _, n := range names {
		if n.DurableNameFormat == "NAA" || n.DurableNameFormat == "EUI" {
			wwn = strings.ToLower(strings.TrimSpace(n.DurableName))
		}
	}
	return wwn
}

// volume is a Volume of a storage controller.
type volume struct {
	Name          string
	RAIDType      string
	VolumeType    string
	CapacityBytes number
	Identifiers   []durableName
}

// isArray reports whether the controller makes the volume of its drives, so that the server sees the volume in their place. For a drive that it
// passes through, some controllers list a volume without a RAID type, or with RawDevice as its type (DSP2046, Volume).
func (v volume) isArray() bool {
	hasRAIDType := v.RAIDType != "" && v.RAIDType != "None"
	return hasRAIDType || v.RAIDType == "" && v.VolumeType != "" && v.VolumeType != "RawDevice"
}

// drive returns the volume as the disk that the server sees.
func (v volume) drive() drive {
	return drive{Name: v.Name, Model: v.Name, CapacityBytes: v.CapacityBytes, Identifiers: v.Identifiers}
}

// isDisk reports whether the drive is a disk of the server: no empty bay, no backplane, and not one that the BMC emulates. A drive whose size the
// BMC does not tell is a disk when it has a serial number or a WWN. Without it: the erase does not expect that disk, and does not miss it.
func (d drive) isDisk() bool {
	isSized := d.bytes() >= minDisk || d.bytes() == 0 && d.disk().HasIdentity()
	return d.Status.State != stateAbsent && isSized && !virtualDrive.MatchString(d.Model) && !virtualDrive.MatchString(d.Name)
}

// bytes returns the size, and 0 when it is unknown.
func (d drive) bytes() number {
	size := d.CapacityBytes
	if size <= 0 {
		size = d.CapacityMiB * (1 << 20)
	}
	if size < 0 || size >= 1<<60 {
		return 0
	}
	return size
}

func (d drive) disk() hardware.Disk {
	result := hardware.Disk{
		Model: strings.TrimSpace(d.Model), SerialNumber: strings.TrimSpace(d.SerialNumber),
		SizeBytes: int64(d.bytes()), Rotational: d.MediaType == "HDD",
	}
	if isPlaceholder(result.SerialNumber) {
		result.SerialNumber = ""
	}
	result.WWN = wwnOf(d.Identifiers)
	return result
}

// addDisks adds the drives that are disks.
func (w *crawl) addDisks(drives []drive) {
	for _, d := range drives {
		if d.isDisk() {
			w.inventory.Disks = append(w.inventory.Disks, d.disk())
		}
	}
}

// readDisks sets Disks from the first of the places that has any: the drives of all storage controllers, HPE's SmartStorage, SimpleStorage. The
// later ones repeat the drives of the earlier ones and tell less of them.
func (w *crawl) readDisks(s *system) error {
	for _, read := range []func(*system) ([]drive, error){w.readStorage, w.readSmartStorage, w.readSimpleStorage} {
		drives, err := read(s)
		if err != nil {
			return err
		}
		if w.addDisks(drives); len(w.inventory.Disks) > 0 {
			return nil
		}
	}
	return nil
}

// readStorage returns the drives of the storage controllers, and the arrays in place of the drives that they are made of. Without that: a server
// boots from two drives that are mirrored by a controller. The agent sees one disk with a serial number of its own, and every erase misses the
// two that the BMC lists, until a person declares gone what is there.
func (w *crawl) readStorage(s *system) ([]drive, error) {
	controllers, err := readMembers[struct{ Drives schemas.Links }](w, s.links.Storage.String())
	if err != nil {
		return nil, err
	}
	var links []string
	for _, c := range controllers {
		links = append(links, c.Drives.ToStrings()...)
	}
	all, err := readLinked[drive](w, links)
	if err != nil {
		return nil, err
	}
	return w.replaceArrays(all)
}

// replaceArrays returns the drives without those that an array is made of, and the arrays. A volume that cannot be found changes nothing.
func (w *crawl) replaceArrays(drives []drive) ([]drive, error) {
	var visible, arrays []drive
	isArray := map[string]bool{} // by the path of a volume that was read
	for _, d := range drives {
		isMember := false
		for _, uri := range d.Links.Volumes.ToStrings() {
			if _, isRead := isArray[uri]; !isRead {
				v, err := readResource[volume](w, uri)
				if err != nil {
					return nil, err
				}
				if isArray[uri] = v != nil && v.isArray(); isArray[uri] {
					arrays = append(arrays, v.drive())
				}
			}
			isMember = isMember || isArray[uri]
		}
		if !isMember {
			visible = append(visible, d)
		}
	}
	return append(visible, arrays...), nil
}

// readSimpleStorage returns the devices of SimpleStorage.
func (w *crawl) readSimpleStorage(s *system) ([]drive, error) {
	controllers, err := readMembers[struct{ Devices []drive }](w, s.links.SimpleStorage.String())
	var all []drive
	for _, c := range controllers {
		all = append(all, c.Devices...)
	}
	return all, err
}

// readSmartStorage returns the drives of HPE's own SmartStorage, where iLO 5 has the disks that its Storage lacks.
func (w *crawl) readSmartStorage(s *system) ([]drive, error) {
	type smartLinks struct {
		Links struct {
			SmartStorage     schemas.Link
			ArrayControllers schemas.Link
			PhysicalDrives   schemas.Link
		}
	}
	var system struct {
		Oem struct{ Hpe, Hp smartLinks }
	}
	if err := w.decode(s.ODataID, s.raw, &system); err != nil {
		return nil, err
	}
	root := string(system.Oem.Hpe.Links.SmartStorage)
	if root == "" {
		root = string(system.Oem.Hp.Links.SmartStorage)
	}
	smart, err := readResource[smartLinks](w, root)
	if err != nil || smart == nil {
		return nil, err
	}
	controllers, err := readMembers[smartLinks](w, smart.Links.ArrayControllers.String())
	var all []drive
	for _, c := range controllers {
		drives, err := readMembers[drive](w, c.Links.PhysicalDrives.String())
		if err != nil {
			return nil, err
		}
		all = append(all, drives...)
	}
	return all, err
}
