package fat32

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	sector          = 512
	reservedSectors = 32
	fats            = 2
	minClusters     = 65525 // fewer would be read as FAT16
	smallLimit      = 260 << 20
	endOfChain      = 0x0FFFFFFF
	media           = 0xF8
	maxFile         = 1<<32 - 1

	// MinSize is the smallest file system that Size gives: one that every firmware takes for FAT32.
	MinSize = 64 << 20
)

// ErrNoSpace: the tree does not fit.
var ErrNoSpace = errors.New("fat32: the file system is full: choose a larger size")

var le = binary.LittleEndian

// Node is a file or, with Dir set, a directory.
type Node struct {
	Name    string
	Dir     bool
	Entries []*Node
	// Size in bytes of the content that Open gives.
	Size int64
	Open func() (io.ReadCloser, error)

	short   [11]byte
	cluster uint32
}

// Params of a file system that are no part of the tree.
type Params struct {
	// Label has at most 11 upper-case characters.
	Label string
	// VolumeID is the serial number.
	VolumeID uint32
	// Time of everything; FAT knows none before 1980.
	Time time.Time
	// HiddenSectors before the partition on the disk.
	HiddenSectors uint32
}

// Writer writes one file system.
type Writer struct {
	out        io.WriterAt
	params     Params
	clusterLen int64 // bytes
	sectors    int64
	fatSectors int64
	clusters   int64
	fat        []uint32
	next       uint32
}

// Size is the size in bytes, a multiple of 1 MiB, of a file system that holds root and a quarter more.
func Size(root *Node) int64 {
	const mib = 1 << 20
	need := sizeOf(root)
	need += need/4 + mib
	return max(MinSize, (need+need/64+mib-1)/mib*mib)
}

func sizeOf(n *Node) int64 {
	const largest = 4096 // the largest cluster that is chosen here
	total := (n.Size + largest - 1) / largest * largest
	if n.Dir {
		total = int64(len(n.Entries)*21*32+2*32+largest) / largest * largest
	}
	for _, e := range n.Entries {
		total += sizeOf(e)
	}
	return total
}

// Write puts root's entries into the first size bytes of out, which must read as zeros.
func Write(out io.WriterAt, size int64, root *Node, p Params) error {
	w := &Writer{out: out, params: p, clusterLen: sector, sectors: size / sector, next: 2}
	if size > smallLimit {
		w.clusterLen = 8 * sector
	}
	perCluster := w.clusterLen / sector
	// Every cluster costs its sectors and four bytes in each FAT, which begins with two entries for none.
	w.fatSectors = (w.sectors - reservedSectors + 2*perCluster + 128*perCluster + fats - 1) / (128*perCluster + fats)
	w.clusters = (w.sectors - reservedSectors - fats*w.fatSectors) / perCluster
	if w.clusters < minClusters || w.sectors >= 1<<32 {
		return fmt.Errorf("fat32: %d bytes are no size for FAT32, which has from 33 MiB to 2 TiB", size)
	}
	w.fat = make([]uint32, w.clusters+2)
	w.fat[0], w.fat[1] = 0x0FFFFF00|media, endOfChain
	if err := w.writeDir(root, nil, ""); err != nil {
		return err
	}
	return w.finish()
}

// allocate hands out a contiguous chain for size bytes and gives its first cluster.
func (w *Writer) allocate(size int64) (uint32, error) {
	n := (size + w.clusterLen - 1) / w.clusterLen
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

func (w *Writer) offset(cluster uint32) int64 {
	return (reservedSectors+fats*w.fatSectors)*sector + int64(cluster-2)*w.clusterLen
}

// writeDir allocates the directory before what is in it, so that the root gets cluster 2.
func (w *Writer) writeDir(n, parent *Node, path string) error {
	if err := shorten(n.Entries, path); err != nil {
		return err
	}
	length := 2 * 32
	for _, e := range n.Entries {
		length += entryLength(e)
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
	_, err = w.out.WriteAt(w.encode(n, parent), w.offset(n.cluster))
	return err
}

func (w *Writer) writeEntry(e, parent *Node, path string) error {
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

// finish writes the FATs, the boot sector, its information sector and the copies of both.
func (w *Writer) finish() error {
	fat := make([]byte, w.fatSectors*sector)
	for i, v := range w.fat[:w.next] {
		le.PutUint32(fat[4*i:], v)
	}
	for i := range int64(fats) {
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

func (w *Writer) bootSector() []byte {
	b := make([]byte, sector)
	copy(b, []byte{0xEB, 0x58, 0x90})
	copy(b[3:], "MSWIN4.1")
	le.PutUint16(b[11:], sector)
	b[13] = byte(w.clusterLen / sector)
	le.PutUint16(b[14:], reservedSectors)
	b[16] = fats
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

func (w *Writer) infoSector() []byte {
	b := make([]byte, sector)
	le.PutUint32(b[0:], 0x41615252)
	le.PutUint32(b[484:], 0x61417272)
	le.PutUint32(b[488:], uint32(int64(len(w.fat))-int64(w.next)))
	le.PutUint32(b[492:], w.next-1)
	b[510], b[511] = 0x55, 0xAA
	return b
}
