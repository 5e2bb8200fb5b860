package iso

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/extent"
)

// Sizes of the file system. A FAT16 file system has 4,085 to 65,524 clusters; with fewer it would be a FAT12 one, with more a FAT32 one.
const (
	fatSector      = 512
	rootEntries    = 512
	entrySize      = 32
	minClusters    = 4085 + 16
	maxClusters    = 65524 - 16
	minClusterSize = 2048
	maxClusterSize = 32768
	firstCluster   = 2
	endOfChain     = 0xffff
)

// Attributes of directory entries.
const (
	attributeReadOnly  = 0x01
	attributeVolume    = 0x08
	attributeDirectory = 0x10
)

// partition is the EFI system partition: the directories EFI and EFI/BOOT take a cluster each, and the program takes those that follow.
type partition struct {
	// meta is what is before the clusters: the boot sector, both tables and the root directory.
	meta []byte
	// directories are the first two clusters.
	directories           []byte
	clusterSize, clusters int64
	fileSize              int64
}

// newPartition returns the partition with a program of the size.
func newPartition(fileName string, size int64) (partition, error) {
	name, err := shortName(fileName)
	if err != nil {
		return partition{}, err
	}
	p := partition{clusterSize: minClusterSize, fileSize: size}
	for p.neededClusters() > maxClusters {
		if p.clusterSize *= 2; p.clusterSize > maxClusterSize {
			return partition{}, fmt.Errorf("a program of %d MiB does not fit on a FAT16 file system", size>>20)
		}
	}
	p.clusters = max(p.neededClusters(), minClusters)
	tableSectors := ((p.clusters+firstCluster)*2 + fatSector - 1) / fatSector
	p.meta = make([]byte, fatSector*(1+2*tableSectors)+rootEntries*entrySize)
	p.writeBootSector(tableSectors)
	for i := range int64(2) {
		p.writeTable(p.meta[fatSector*(1+i*tableSectors):])
	}
	root := p.meta[int64(len(p.meta))-rootEntries*entrySize:]
	copy(root, entry("INGOT      ", attributeVolume, 0, 0))
	copy(root[entrySize:], entry("EFI        ", attributeDirectory, firstCluster, 0))
	p.directories = make([]byte, 2*p.clusterSize)
	efi, boot := p.directories[:p.clusterSize], p.directories[p.clusterSize:]
	copy(efi, entry(".          ", attributeDirectory, firstCluster, 0))
	copy(efi[entrySize:], entry("..         ", attributeDirectory, 0, 0))
	copy(efi[2*entrySize:], entry("BOOT       ", attributeDirectory, firstCluster+1, 0))
	copy(boot, entry(".          ", attributeDirectory, firstCluster+1, 0))
	copy(boot[entrySize:], entry("..         ", attributeDirectory, firstCluster, 0))
	copy(boot[2*entrySize:], entry(name, attributeReadOnly, firstCluster+2, uint32(size)))
	return p, nil
}

// shortName returns the name as a directory entry has it.
func shortName(fileName string) (string, error) {
	base, extension, _ := strings.Cut(fileName, ".")
	if base == "" || len(base) > 8 || len(extension) > 3 || strings.ToUpper(fileName) != fileName {
		return "", fmt.Errorf("file name %q: expected at most 8 and 3 capital letters", fileName)
	}
	return fmt.Sprintf("%-8s%-3s", base, extension), nil
}

// neededClusters returns how many clusters directories and program take.
func (p partition) neededClusters() int64 { return 2 + (p.fileSize+p.clusterSize-1)/p.clusterSize }

func (p partition) size() int64 { return int64(len(p.meta)) + p.clusters*p.clusterSize }

func (p partition) appendTo(image *extent.Content, program io.ReaderAt) {
	end := image.Size() + p.size()
	image.AppendBytes(p.meta)
	image.AppendBytes(p.directories)
	image.Append(program, p.fileSize)
	image.PadTo(end)
}

// writeBootSector writes the BIOS parameter block.
func (p partition) writeBootSector(tableSectors int64) {
	b := p.meta[:fatSector]
	copy(b, "\xeb\x3c\x90INGOT   ")
	little := binary.LittleEndian
	little.PutUint16(b[11:], fatSector)
	b[13] = byte(p.clusterSize / fatSector)
	little.PutUint16(b[14:], 1) // reserved sectors
	b[16] = 2                   // tables
	little.PutUint16(b[17:], rootEntries)
	if total := p.size() / fatSector; total < 1<<16 {
		little.PutUint16(b[19:], uint16(total))
	} else {
		little.PutUint32(b[32:], uint32(total))
	}
	b[21] = 0xf8 // fixed medium
	little.PutUint16(b[22:], uint16(tableSectors))
	little.PutUint16(b[24:], 32) // sectors per track and heads, which nobody uses
	little.PutUint16(b[26:], 64)
	b[36], b[38] = 0x80, 0x29
	copy(b[43:], "INGOT      FAT16   ")
	b[510], b[511] = 0x55, 0xaa
}

// writeTable writes a file allocation table: a cluster for each directory, then the chain of the program.
func (p partition) writeTable(table []byte) {
	put := func(cluster int64, value uint16) { binary.LittleEndian.PutUint16(table[2*cluster:], value) }
	put(0, 0xfff8)
	put(1, endOfChain)
	put(firstCluster, endOfChain)
	put(firstCluster+1, endOfChain)
	last := firstCluster + p.neededClusters() - 1
	for cluster := int64(firstCluster + 2); cluster < last; cluster++ {
		put(cluster, uint16(cluster+1))
	}
	if p.fileSize > 0 {
		put(last, endOfChain)
	}
}

// entry returns a directory entry with the date 1980-01-01, the first one that FAT knows.
func entry(name string, attributes byte, cluster uint16, size uint32) []byte {
	e := make([]byte, entrySize)
	copy(e, name)
	e[11] = attributes
	for _, at := range []int{16, 18, 24} {
		binary.LittleEndian.PutUint16(e[at:], 1<<5|1)
	}
	binary.LittleEndian.PutUint16(e[26:], cluster)
	binary.LittleEndian.PutUint32(e[28:], size)
	return e
}
