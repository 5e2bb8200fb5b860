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
	// Label is the volume label that an operating system looks for.
	Label = "config-2"
	// MaxSize bounds the volume: cloud-init and Nova agree on 64 MiB.
	MaxSize = 64 << 20
	// sector is the logical sector of ISO 9660.
	sector = 2048
	// Modes of POSIX, Rock Ridge's PX entry: the documents hold secrets, so root alone reads them.
	modeDir, modeFile = 0o040500, 0o100400
)

// Layout of the volume, in sectors (ECMA-119 section 6.2.1: 16 are the system's).
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

// Empty says that there is nothing to deliver.
func Empty(drive hardware.ConfigDrive) bool {
	return len(drive.UserData) == 0 && len(drive.NetworkData) == 0 && len(drive.MetaData) == 0
}

// record is one directory record. iso is the name of plain ISO 9660, name that of Rock Ridge.
type record struct {
	iso, name string
	at, size  int
	dir       bool
}

// Build makes the volume. Documents that are empty are left out. The same documents always give the same bytes.
func Build(drive hardware.ConfigDrive) ([]byte, error) {
	documents := []struct {
		iso, name string
		data      []byte
	}{ // in the order of their ISO names, as ECMA-119 section 9.3 asks for
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
	if end*sector > MaxSize {
		return nil, fmt.Errorf("the config drive's documents need %d bytes, at most %d fit", end*sector, MaxSize)
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
	both32(pvd[80:], sectors)
	both16(pvd[120:], 1)
	both16(pvd[124:], 1)
	both16(pvd[128:], sector)
	little := pathTable(binary.LittleEndian)
	both32(pvd[132:], len(little))
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

// pathTable lists the three directories (ECMA-119 section 9.4).
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
		// SUSP's indicator, then Rock Ridge's identification (IEEE P1281 section 5.3, P1282 section 4.3), in the root's own entry only.
		own = append(own, 'S', 'P', 7, 1, 0xBE, 0xEF, 0)
	}
	own = append(own, posix(modeDir, 2)...)
	if self.at == sectorRoot {
		const id = "RRIP_1991A"
		own = append(own, 'E', 'R', byte(8+len(id)), 1, byte(len(id)), 0, 0, 1)
		own = append(own, id...)
	}
	var out bytes.Buffer
	out.Write(self.bytes("\x00", own))
	out.Write(parent.bytes("\x01", posix(modeDir, 2)))
	for _, child := range children {
		mode, links := modeFile, 1
		if child.dir {
			mode, links = modeDir, 2
		}
		use := append([]byte{'N', 'M', byte(5 + len(child.name)), 1, 0}, child.name...)
		out.Write(child.bytes(child.iso, append(use, posix(mode, links)...)))
	}
	copy(volume[self.at*sector:][:sector], out.Bytes())
}

// bytes is the directory record of ECMA-119 section 9.1 with the system use area behind it.
func (r record) bytes(identifier string, use []byte) []byte {
	out := make([]byte, 33, 256)
	both32(out[2:], r.at)
	both32(out[10:], r.size)
	copy(out[18:25], []byte{100, 1, 1, 0, 0, 0, 0}) // 2000-01-01: the date is no input
	if r.dir {
		out[25] = 2
	}
	both16(out[28:], 1)
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

// posix is Rock Ridge's PX entry: mode, links, user and group root.
func posix(mode, links int) []byte {
	out := make([]byte, 36)
	copy(out, []byte{'P', 'X', 36, 1})
	both32(out[4:], mode)
	both32(out[12:], links)
	return out
}

func both32(into []byte, value int) {
	binary.LittleEndian.PutUint32(into, uint32(value))
	binary.BigEndian.PutUint32(into[4:], uint32(value))
}

func both16(into []byte, value int) {
	binary.LittleEndian.PutUint16(into, uint16(value))
	binary.BigEndian.PutUint16(into[2:], uint16(value))
}

// Found says whether a volume with the label of a config drive begins at the offset. What cannot be read is none.
func Found(disk io.ReaderAt, offset int64) bool {
	descriptor := make([]byte, 72)
	if _, err := disk.ReadAt(descriptor, offset+sectorPVD*sector); err != nil {
		return false
	}
	return string(descriptor[1:6]) == "CD001" && strings.TrimRight(string(descriptor[40:72]), " ") == Label
}
