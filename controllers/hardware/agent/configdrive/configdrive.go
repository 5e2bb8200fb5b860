package configdrive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// Label is the volume label by which an operating system finds the config drive.
	Label = "config-2"
	// maxSize is the maximum size of the volume for cloud-init and Nova.
	maxSize = 64 << 20
	// sector is the logical sector size of ISO 9660.
	sector = 2048
	// modeDir and modeFile are POSIX modes for Rock Ridge. The documents hold secrets, so only root may read them.
	modeDir, modeFile = 0o040500, 0o100400
)

// Layout of the volume, in sectors. The first 16 are reserved for the system (ECMA-119 section 6.2.1).
const (
	sectorPVD = 16 + iota
	sectorEnd
	sectorPathLittle
	sectorPathBig
	sectorRoot
	sectorOpenstack
	sectorLatest
	sectorFiles
)

// IsEmpty reports whether the config drive has no documents.
func IsEmpty(drive hardware.ConfigDrive) bool {
	return len(drive.UserData) == 0 && len(drive.NetworkData) == 0 && len(drive.MetaData) == 0
}

// record is a directory record. iso is the ISO 9660 name, name the Rock Ridge name.
type record struct {
	iso, name string
	at, size  int
	dir       bool
}

// Build returns the volume. Empty documents are left out. The same documents always result in the same bytes.
func Build(drive hardware.ConfigDrive) ([]byte, error) {
	documents := []struct {
		iso, name string
		data      []byte
	}{ // in the order of their ISO names, as ECMA-119 section 9.3 requires
		{"META_DATA.JSON;1", "meta_data.json", drive.MetaData},
		{"NETWORK_DATA.JSON;1", "network_data.json", drive.NetworkData},
		{"USER_DATA.;1", "user_data", drive.UserData},
	}
	end := sectorFiles
	var files []record
	for _, document := range documents {
		if len(document.data) == 0 {
			continue
		}
		files = append(files, record{iso: document.iso, name: document.name, at: end, size: len(document.data)})
		end += (len(document.data) + sector - 1) / sector
	}
	if end*sector > maxSize {
		return nil, fmt.Errorf("the config drive's documents need %d bytes, at most %d fit", end*sector, maxSize)
	}
	volume := make([]byte, end*sector)
	putDescriptors(volume, end)
	root, openstack := record{at: sectorRoot, size: sector, dir: true}, record{iso: "OPENSTACK", name: "openstack", at: sectorOpenstack, size: sector, dir: true}
	latest := record{iso: "LATEST", name: "latest", at: sectorLatest, size: sector, dir: true}
	putDirectory(volume, root, root, []record{openstack})
	putDirectory(volume, openstack, root, []record{latest})
	putDirectory(volume, latest, openstack, files)
	for _, document := range documents {
		for _, file := range files {
			if file.name == document.name {
				copy(volume[file.at*sector:], document.data)
			}
		}
	}
	return volume, nil
}

// putDescriptors writes the primary volume descriptor (ECMA-119 section 8.4), the terminator and the path tables.
func putDescriptors(volume []byte, sectors int) {
	pvd := volume[sectorPVD*sector:][:sector]
	for i := 8; i < 72; i++ {
		pvd[i] = ' '
	}
	pvd[0], pvd[6] = 1, 1
	copy(pvd[1:], "CD001")
	copy(pvd[40:72], Label)
	putBoth32(pvd[80:], sectors)
	putBoth16(pvd[120:], 1)
	putBoth16(pvd[124:], 1)
	putBoth16(pvd[128:], sector)
	little := pathTable(binary.LittleEndian)
	putBoth32(pvd[132:], len(little))
	binary.LittleEndian.PutUint32(pvd[140:], sectorPathLittle)
	binary.BigEndian.PutUint32(pvd[148:], sectorPathBig)
	copy(pvd[156:190], record{at: sectorRoot, size: sector, dir: true}.bytes("\x00", nil))
	for i := 190; i < 813; i++ {
		pvd[i] = ' '
	}
	for _, at := range []int{813, 830, 847, 864} { // dates: sixteen digits zero mean "not specified"
		copy(pvd[at:], strings.Repeat("0", 16))
	}
	pvd[881] = 1
	end := volume[sectorEnd*sector:]
	end[0], end[6] = 255, 1
	copy(end[1:], "CD001")
	copy(volume[sectorPathLittle*sector:], little)
	copy(volume[sectorPathBig*sector:], pathTable(binary.BigEndian))
}

// pathTable returns the path table with the three directories (ECMA-119 section 9.4).
func pathTable(order binary.AppendByteOrder) []byte {
	var out []byte
	for _, dir := range []struct {
		name   string
		at     uint32
		parent uint16
	}{{"\x00", sectorRoot, 1}, {"OPENSTACK", sectorOpenstack, 1}, {"LATEST", sectorLatest, 2}} {
		out = append(out, byte(len(dir.name)), 0)
		out = order.AppendUint32(out, dir.at)
		out = order.AppendUint16(out, dir.parent)
		out = append(out, dir.name...)
		if len(dir.name)%2 == 1 {
			out = append(out, 0)
		}
	}
	return out
}

// putDirectory writes a directory of one sector.
func putDirectory(volume []byte, self, parent record, children []record) {
	var own []byte
	if self.at == sectorRoot {
		// The SUSP indicator and the Rock Ridge identification (IEEE P1281 section 5.3, P1282 section 4.3) are in the root's own entry only.
		own = append(own, 'S', 'P', 7, 1, 0xBE, 0xEF, 0)
	}
	own = append(own, posixAttributes(modeDir, 2)...)
	if self.at == sectorRoot {
		const id = "RRIP_1991A"
		own = append(own, 'E', 'R', byte(8+len(id)), 1, byte(len(id)), 0, 0, 1)
		own = append(own, id...)
	}
	var out bytes.Buffer
	out.Write(self.bytes("\x00", own))
	out.Write(parent.bytes("\x01", posixAttributes(modeDir, 2)))
	for _, child := range children {
		mode, links := modeFile, 1
		if child.dir {
			mode, links = modeDir, 2
		}
		use := append([]byte{'N', 'M', byte(5 + len(child.name)), 1, 0}, child.name...)
		out.Write(child.bytes(child.iso, append(use, posixAttributes(mode, links)...)))
	}
	copy(volume[self.at*sector:][:sector], out.Bytes())
}

// bytes returns the directory record of ECMA-119 section 9.1 followed by the system use area.
func (r record) bytes(identifier string, use []byte) []byte {
	out := make([]byte, 33, 256)
	putBoth32(out[2:], r.at)
	putBoth32(out[10:], r.size)
	copy(out[18:25], []byte{100, 1, 1, 0, 0, 0, 0}) // 2000-01-01, so that the bytes do not depend on the date
	if r.dir {
		out[25] = 2
	}
	putBoth16(out[28:], 1)
	out[32] = byte(len(identifier))
	out = append(out, identifier...)
	if len(identifier)%2 == 0 {
		out = append(out, 0)
	}
	out = append(out, use...)
	if len(out)%2 == 1 {
		out = append(out, 0)
	}
	out[0] = byte(len(out))
	return out
}

// posixAttributes returns the PX entry of Rock Ridge: mode, links, user and group root.
func posixAttributes(mode, links int) []byte {
	out := make([]byte, 36)
	copy(out, []byte{'P', 'X', 36, 1})
	putBoth32(out[4:], mode)
	putBoth32(out[12:], links)
	return out
}

func putBoth32(into []byte, value int) {
	binary.LittleEndian.PutUint32(into, uint32(value))
	binary.BigEndian.PutUint32(into[4:], uint32(value))
}

func putBoth16(into []byte, value int) {
	binary.LittleEndian.PutUint16(into, uint16(value))
	binary.BigEndian.PutUint16(into[2:], uint16(value))
}

// IsConfigDrive reports whether a volume with the label of a config drive begins at the offset. It returns false when reading fails.
func IsConfigDrive(disk io.ReaderAt, offset int64) bool {
	descriptor := make([]byte, 72)
	if _, err := disk.ReadAt(descriptor, offset+sectorPVD*sector); err != nil {
		return false
	}
	return string(descriptor[1:6]) == "CD001" && strings.TrimRight(string(descriptor[40:72]), " ") == Label
}
