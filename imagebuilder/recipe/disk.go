package recipe

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Partition types of a GUID partition table.
const (
	TypeESP = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
	// TypeRootAMD64 and TypeRootARM64 are defined by the Discoverable Partitions Specification.
	TypeRootAMD64 = "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"
	TypeRootARM64 = "B921B045-1DF0-41C3-AF44-4C6F280D3FAE"
	typeLinux     = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
)

const (
	sector = 512
	// alignment is the alignment of partitions in bytes, as the usual tools choose it.
	alignment = 1 << 20
	// leadBytes is the space before the first partition, tailBytes the space after the last one for the backup table.
	leadBytes, tailBytes = alignment, alignment
)

// Partition is a partition of a disk. Start and Size are in bytes.
type Partition struct {
	Name, Type, GUID string
	Start, Size      int64
}

// Disk is the layout of an image.
type Disk struct {
	GUID string
	// Size is the size of the disk in bytes.
	Size int64
	// ESP is the EFI system partition; nil when there is none.
	ESP  *Partition
	Root Partition
}

// Identity holds the identifiers of an image. They are derived from the content, so that different images have different ones.
type Identity struct {
	DiskGUID, ESPGUID, RootGUID string
	RootUUID, HashSeed          [16]byte
	VolumeID                    uint32
}

// NewIdentity derives the identity from the digest of the content.
func NewIdentity(content [32]byte) Identity {
	id := func(what string) [16]byte {
		sum := sha256.Sum256(append(content[:], what...))
		u := [16]byte(sum[:16])
		u[6] = u[6]&0x0f | 0x80 // version 8: vendor-specific (RFC 9562)
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

// PartitionSizes are the minimum sizes of the partitions in bytes. ESP is 0 when there is no EFI system partition.
type PartitionSizes struct {
	ESP, Root int64
}

// NewDisk returns the layout of a disk of size bytes. size 0 means the smallest size that is sufficient.
func NewDisk(need PartitionSizes, size int64, architecture string, id Identity) (Disk, error) {
	minimum := leadBytes + alignUp(need.ESP) + alignUp(need.Root) + tailBytes
	if size == 0 {
		size = minimum
	}
	if size = size / alignment * alignment; size < minimum {
		return Disk{}, fmt.Errorf("a disk of %d MiB is too small: the tree needs at least %d MiB; choose a larger --size or leave it out", size/alignment, minimum/alignment)
	}
	d := Disk{GUID: id.DiskGUID, Size: size}
	at := int64(leadBytes)
	if need.ESP > 0 {
		d.ESP = &Partition{Name: "esp", Type: TypeESP, GUID: id.ESPGUID, Start: at, Size: alignUp(need.ESP)}
		at += d.ESP.Size
	}
	kind := typeLinux
	switch architecture {
	case "amd64":
		kind = TypeRootAMD64
	case "arm64":
		kind = TypeRootARM64
	}
	d.Root = Partition{Name: "root", Type: kind, GUID: id.RootGUID, Start: at, Size: size - tailBytes - at}
	return d, nil
}

// alignUp rounds n up to a multiple of alignment.
func alignUp(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

// SectorRange returns the first and the last sector.
func (p Partition) SectorRange() (first, last uint64) {
	return uint64(p.Start / sector), uint64((p.Start+p.Size)/sector - 1)
}
