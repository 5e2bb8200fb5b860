package recipe

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Partition types of the GPT.
const (
	TypeESP = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
	// TypeRootAMD64 and TypeRootARM64 are those of the Discoverable Partitions Specification.
	TypeRootAMD64 = "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"
	TypeRootARM64 = "B921B045-1DF0-41C3-AF44-4C6F280D3FAE"
	typeLinux     = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
)

const (
	sector = 512
	// align is what every tool of the field aligns partitions to.
	align = 1 << 20
	// Lead is what precedes the first partition, Tail what follows the last: the backup table.
	Lead, Tail = align, align
)

// Partition of a disk; Start and Size are in bytes.
type Partition struct {
	Name, Type, GUID string
	Start, Size      int64
}

// Disk is the layout of an image.
type Disk struct {
	GUID string
	// Size of the whole disk in bytes.
	Size int64
	// ESP is nil when none is wanted.
	ESP  *Partition
	Root Partition
}

// Identity tells an image's parts from those of every other image; all of it follows from the content.
type Identity struct {
	DiskGUID, ESPGUID, RootGUID string
	RootUUID, HashSeed          [16]byte
	VolumeID                    uint32
}

// Identify derives the identity from the digest of all content.
func Identify(content [32]byte) Identity {
	id := func(what string) [16]byte {
		sum := sha256.Sum256(append(content[:], what...))
		u := [16]byte(sum[:16])
		u[6] = u[6]&0x0f | 0x80 // version 8: made by a rule of one's own (RFC 9562)
		u[8] = u[8]&0x3f | 0x80
		return u
	}
	text := func(u [16]byte) string {
		return fmt.Sprintf("%X-%X-%X-%X-%X", u[0:4], u[4:6], u[6:8], u[8:10], u[10:])
	}
	esp := id("esp")
	return Identity{
		DiskGUID: text(id("disk")), ESPGUID: text(esp), RootGUID: text(id("root partition")),
		RootUUID: id("root"), HashSeed: id("hash seed"), VolumeID: binary.LittleEndian.Uint32(esp[:4]),
	}
}

// Need is how many bytes the parts take at least; ESP is 0 when none is wanted.
type Need struct {
	ESP, Root int64
}

// Lay places the partitions. size is that of the whole disk; 0 asks for the smallest that fits.
func Lay(need Need, size int64, architecture string, id Identity) (Disk, error) {
	least := Lead + up(need.ESP) + up(need.Root) + Tail
	if size == 0 {
		size = least
	}
	if size = size / align * align; size < least {
		return Disk{}, fmt.Errorf("a disk of %d MiB is too small: the tree needs at least %d MiB; choose a larger --size or leave it out", size/align, least/align)
	}
	d := Disk{GUID: id.DiskGUID, Size: size}
	at := int64(Lead)
	if need.ESP > 0 {
		d.ESP = &Partition{Name: "esp", Type: TypeESP, GUID: id.ESPGUID, Start: at, Size: up(need.ESP)}
		at += d.ESP.Size
	}
	kind := typeLinux
	switch architecture {
	case "amd64":
		kind = TypeRootAMD64
	case "arm64":
		kind = TypeRootARM64
	}
	d.Root = Partition{Name: "root", Type: kind, GUID: id.RootGUID, Start: at, Size: size - Tail - at}
	return d, nil
}

func up(n int64) int64 { return (n + align - 1) / align * align }

// Sectors gives the first and the last sector.
func (p Partition) Sectors() (first, last uint64) {
	return uint64(p.Start / sector), uint64((p.Start+p.Size)/sector - 1)
}
