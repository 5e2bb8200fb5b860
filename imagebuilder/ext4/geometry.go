package ext4

import "fmt"

const (
	// BlockSize is the size of a block in bytes.
	BlockSize = 4096

	blocksPerGroup = 8 * BlockSize // one bitmap block
	inodeSize      = 256
	inodesPerBlock = BlockSize / inodeSize
	firstInode     = 11 // also lost+found
	rootInode      = 2
	journalInode   = 8
	descSize       = 64
	descsPerBlock  = BlockSize / descSize
	minGroupRoom   = 64    // minimum number of data blocks in a shorter last group
	bytesPerInode  = 16384 // mke2fs' default ratio; groups that are added when the file system grows get as many
)

// geometry is the layout of a file system. It is determined by the size and the number of inodes.
type geometry struct {
	blocks         int64
	groups         int64
	gdtBlocks      int64
	inodesPerGroup int64
	journalBlocks  int64
}

// newGeometry returns the layout of a file system of at most size bytes with at least that many inodes. A last group that is too short
// for data is left out.
func newGeometry(size, inodes int64) (geometry, error) {
	g := geometry{blocks: size / BlockSize}
	for {
		g.groups = (g.blocks + blocksPerGroup - 1) / blocksPerGroup
		if g.groups == 0 {
			return g, fmt.Errorf("ext4: %d bytes are too few for a file system", size)
		}
		g.gdtBlocks = (g.groups + descsPerBlock - 1) / descsPerBlock
		perGroup := max(blocksPerGroup*BlockSize/bytesPerInode, (inodes+g.groups-1)/g.groups)
		g.inodesPerGroup = (perGroup + inodesPerBlock - 1) / inodesPerBlock * inodesPerBlock
		if g.inodesPerGroup > 8*BlockSize {
			return g, fmt.Errorf("ext4: %d files are too many for %d bytes", inodes, size)
		}
		last := g.groups - 1
		if g.size(last)-g.overhead(last) >= minGroupRoom {
			break
		}
		g.blocks = last * blocksPerGroup
	}
	g.journalBlocks = journalBlocks(g.blocks)
	return g, nil
}

// journalBlocks returns the size of the journal as mke2fs chooses it, at most 128 MiB.
func journalBlocks(blocks int64) int64 {
	switch {
	case blocks < 32768:
		return 1024
	case blocks < 256*1024:
		return 4096
	case blocks < 512*1024:
		return 8192
	case blocks < 4096*1024:
		return 16384
	default:
		return 32768
	}
}

func (g geometry) first(group int64) int64 { return group * blocksPerGroup }
func (g geometry) size(group int64) int64  { return min(blocksPerGroup, g.blocks-g.first(group)) }
func (g geometry) tableBlocks() int64      { return g.inodesPerGroup / inodesPerBlock }

// hasSuperblock reports whether a group begins with a superblock and group descriptors: 0, 1 and the powers of 3, 5 and 7.
func hasSuperblock(group int64) bool {
	if group <= 1 {
		return true
	}
	for _, base := range []int64{3, 5, 7} {
		p := base
		for p < group {
			p *= base
		}
		if p == group {
			return true
		}
	}
	return false
}

// blockBitmap returns the block of a group's block bitmap. The inode bitmap and the inode table follow it.
func (g geometry) blockBitmap(group int64) int64 {
	b := g.first(group)
	if hasSuperblock(group) {
		b += 1 + g.gdtBlocks
	}
	return b
}

func (g geometry) inodeBitmap(group int64) int64 { return g.blockBitmap(group) + 1 }
func (g geometry) inodeTable(group int64) int64  { return g.blockBitmap(group) + 2 }

// overhead returns the number of blocks of a group that hold no data.
func (g geometry) overhead(group int64) int64 {
	return g.inodeTable(group) + g.tableBlocks() - g.first(group)
}

func (g geometry) inodeOffset(ino uint32) int64 {
	group, index := int64(ino-1)/g.inodesPerGroup, int64(ino-1)%g.inodesPerGroup
	return g.inodeTable(group)*BlockSize + index*inodeSize
}

// MinSize returns the smallest size in bytes, a multiple of 1 MiB, that holds root and the free bytes in addition.
func MinSize(root *Node, free int64) (int64, error) {
	data, inodes := free/BlockSize, int64(firstInode)
	err := walk(root, func(_ string, n, _ *Node) error {
		inodes++
		data += dataBlocks(n)
		return nil
	})
	if err != nil {
		return 0, err
	}
	const mib = 1 << 20
	for size := (data + 1024) * BlockSize / mib * mib; ; size += max(mib, size/256/mib*mib) {
		g, err := newGeometry(size, inodes)
		if err != nil {
			continue
		}
		room := g.blocks - g.journalBlocks
		for group := range g.groups {
			room -= g.overhead(group)
		}
		if room >= data {
			return size, nil
		}
	}
}

// dataBlocks returns an upper bound for the number of blocks of a node, including extent blocks.
func dataBlocks(n *Node) int64 {
	switch n.fileType() {
	case ModeRegular:
		blocks := (n.Size + BlockSize - 1) / BlockSize
		return blocks + extentTreeBlocks(blocks/(blocksPerGroup/2)+1)
	case ModeDir:
		return int64(len(directoryLayout(n)))
	case ModeSymlink:
		if len(n.Target) >= fastSymlink {
			return 1
		}
	}
	return 0
}
