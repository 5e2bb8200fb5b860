package fat32

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	sector              = 512
	reservedSectors     = 32
	fatCount            = 2
	minClusters         = 65525 // fewer would be read as FAT16
	maxSmallClusterSize = 260 << 20
	endOfChain          = 0x0FFFFFFF
	media               = 0xF8
	maxFile             = 1<<32 - 1

	// MinSize is the smallest size that Size returns. Every firmware recognizes a file system of this size as FAT32.
	MinSize = 64 << 20
)

// ErrNoSpace means that the tree does not fit.
var ErrNoSpace = errors.New("fat32: the file system is full: choose a larger size")

var le = binary.LittleEndian

// Node is a file or, with Dir set, a directory.
type Node struct {
	Name    string
	Dir     bool
	Entries []*Node
	// Size is the size in bytes of the content that Open returns.
	Size int64
	Open func() (io.ReadCloser, error)

	short   [11]byte
	cluster uint32
}

// Params are the properties of a file system that are not part of the tree.
type Params struct {
	// Label is the volume name of at most 11 upper-case characters.
	Label string
	// VolumeID is the serial number.
	VolumeID uint32
	// Time is the time of all files. FAT has no time before 1980.
	Time time.Time
	// HiddenSectors is the number of sectors before the partition on the disk.
	HiddenSectors uint32
}

// Writer writes one file system.
type writer struct {
	out         io.WriterAt
	params      Params
	clusterSize int64 // bytes
	sectors     int64
	fatSectors  int64
	clusters    int64
	fat         []uint32
	next        uint32
}

// Size returns the size in bytes, a multiple of 1 MiB, of a file system that holds root and has a quarter of that size free.
func Size(root *Node) int64 {
	const mib = 1 << 20
	need := contentSize(root)
	need += need/4 + mib
	return max(MinSize, (need+need/64+mib-1)/mib*mib)
}

func contentSize(n *Node) int64 {
	const largest = 4096 // the largest cluster that is chosen here
	total := (n.Size + largest - 1) / largest * largest
	if n.Dir {
		total = int64(len(n.Entries)*21*32+2*32+largest) / largest * largest
	}
	for _, e := range n.Entries {
		total += contentSize(e)
	}
	return total
}

// Write writes the file system with the entries of root into the first size bytes of out, which must read as zeros.
func Write(out io.WriterAt, size int64, root *Node, p Params) error {
	w := &writer{out: out, params: p, clusterSize: sector, sectors: size / sector, next: 2}
	if size > maxSmallClusterSize {
		w.clusterSize = 8 * sector
	}
	perCluster := w.clusterSize / sector
	// Every cluster needs its sectors and four bytes in each FAT. A FAT begins with two reserved entries.
	w.fatSectors = (w.sectors - reservedSectors + 2*perCluster + 128*perCluster + fatCount - 1) / (128*perCluster + fatCount)
	w.clusters = (w.sectors - reservedSectors - fatCount*w.fatSectors) / perCluster
	if w.clusters < minClusters || w.sectors >= 1<<32 {
		return fmt.Errorf("fat32: %d bytes are no size for FAT32, which has from 33 MiB to 2 TiB", size)
	}
	w.fat = make([]uint32, w.clusters+2)
	w.fat[0], w.fat[1] = 0x0FFFFF00|media, endOfChain
	if err := w.writeDir(root, nil, ""); err != nil {
		return err
	}
	return w.writeMetadata()
}

// allocate allocates a contiguous chain for size bytes and returns its first cluster.
func (w *writer) allocate(size int64) (uint32, error) {
	n := (size + w.clusterSize - 1) / w.clusterSize
	if n == 0 {
		return 0, nil
	}
	if int64(w.next)+n > int64(len(w.fat)) {
		return 0, ErrNoSpace
	}
	first := w.next
	for i := range uint32(n) {
		w.fat[first+i] = first + i + 1
	}
	w.next += uint32(n)
	w.fat[w.next-1] = endOfChain
	return first, nil
}

func (w *writer) offset(cluster uint32) int64 {
	return (reservedSectors+fatCount*w.fatSectors)*sector + int64(cluster-2)*w.clusterSize
}

// writeDir writes a directory and its entries. It allocates the directory first, so that the root gets cluster 2.
func (w *writer) writeDir(n, parent *Node, path string) error {
	if err := assignShortNames(n.Entries, path); err != nil {
		return err
	}
	length := 2 * 32
	for _, e := range n.Entries {
		length += directoryEntryLength(e)
	}
	var err error
	if n.cluster, err = w.allocate(int64(length)); err != nil {
		return err
	}
	for _, e := range n.Entries {
		if err := w.writeEntry(e, n, path+"/"+e.Name); err != nil {
			return err
		}
	}
	_, err = w.out.WriteAt(w.encodeDirectory(n, parent), w.offset(n.cluster))
	return err
}

func (w *writer) writeEntry(e, parent *Node, path string) error {
	if e.Dir {
		return w.writeDir(e, parent, path)
	}
	if e.Size > maxFile {
		return fmt.Errorf("fat32: %s: %d bytes are more than FAT32's 4 GiB", path, e.Size)
	}
	var err error
	if e.cluster, err = w.allocate(e.Size); err != nil || e.Size == 0 {
		return err
	}
	r, err := e.Open()
	if err != nil {
		return fmt.Errorf("fat32: %s: %w", path, err)
	}
	defer r.Close()
	n, err := io.Copy(io.NewOffsetWriter(w.out, w.offset(e.cluster)), io.LimitReader(r, e.Size+1))
	if err == nil && n != e.Size {
		err = fmt.Errorf("expected %d bytes, seen %d: the file changed while it was packed", e.Size, n)
	}
	if err != nil {
		return fmt.Errorf("fat32: %s: %w", path, err)
	}
	return nil
}

// writeMetadata writes the FATs, the boot sector, the information sector and the copies of both.
func (w *writer) writeMetadata() error {
	fat := make([]byte, w.fatSectors*sector)
	for i, v := range w.fat[:w.next] {
		le.PutUint32(fat[4*i:], v)
	}
	for i := range int64(fatCount) {
		if _, err := w.out.WriteAt(fat, (reservedSectors+i*w.fatSectors)*sector); err != nil {
			return err
		}
	}
	boot, info := w.bootSector(), w.infoSector()
	for at, b := range map[int64][]byte{0: boot, 1: info, 6: boot, 7: info} {
		if _, err := w.out.WriteAt(b, at*sector); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) bootSector() []byte {
	b := make([]byte, sector)
	copy(b, []byte{0xEB, 0x58, 0x90})
	copy(b[3:], "MSWIN4.1")
	le.PutUint16(b[11:], sector)
	b[13] = byte(w.clusterSize / sector)
	le.PutUint16(b[14:], reservedSectors)
	b[16] = fatCount
	b[21] = media
	le.PutUint16(b[24:], 63)
	le.PutUint16(b[26:], 255)
	le.PutUint32(b[28:], w.params.HiddenSectors)
	le.PutUint32(b[32:], uint32(w.sectors))
	le.PutUint32(b[36:], uint32(w.fatSectors))
	le.PutUint32(b[44:], 2) // root directory
	le.PutUint16(b[48:], 1) // information sector
	le.PutUint16(b[50:], 6) // copy of this sector
	b[64] = 0x80
	b[66] = 0x29
	le.PutUint32(b[67:], w.params.VolumeID)
	copy(b[71:82], fmt.Sprintf("%-11.11s", w.params.Label))
	copy(b[82:], "FAT32   ")
	b[510], b[511] = 0x55, 0xAA
	return b
}

func (w *writer) infoSector() []byte {
	b := make([]byte, sector)
	le.PutUint32(b[0:], 0x41615252)
	le.PutUint32(b[484:], 0x61417272)
	le.PutUint32(b[488:], uint32(int64(len(w.fat))-int64(w.next)))
	le.PutUint32(b[492:], w.next-1)
	b[510], b[511] = 0x55, 0xAA
	return b
}
