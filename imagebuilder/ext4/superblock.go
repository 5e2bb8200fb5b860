package ext4

import (
	"encoding/binary"
	"hash/crc32"
)

// Feature bits.
const (
	compatFeatures   = 0x4 | 0x8 | 0x20                      // has_journal, ext_attr, dir_index
	incompatFeatures = 0x2 | 0x40 | 0x80                     // filetype, extents, 64bit
	roFeatures       = 0x1 | 0x2 | 0x8 | 0x20 | 0x40 | 0x400 // sparse_super, large_file, huge_file, dir_nlink, extra_isize, metadata_csum
	reservedPercent  = 5                                     // blocks that only root may use, as mke2fs does
	groupTableZeroed = 0x4
	mountOptions     = 0x4 | 0x8 // user_xattr, acl
)

// writeJournal writes the inode of the journal and an empty journal. The numbers in the journal are big-endian.
func (w *writer) writeJournal() error {
	b, runs, err := w.allocateExtents(journalInode, w.geometry.journalBlocks*BlockSize)
	if err != nil {
		return err
	}
	w.journalRoot = b.block
	be := binary.BigEndian
	s := make([]byte, BlockSize)
	be.PutUint32(s[0x00:], 0xC03B3998)
	be.PutUint32(s[0x04:], 4) // superblock version 2
	be.PutUint32(s[0x0C:], BlockSize)
	be.PutUint32(s[0x10:], uint32(w.geometry.journalBlocks))
	be.PutUint32(s[0x14:], 1) // first block of the log
	be.PutUint32(s[0x18:], 1) // first transaction expected
	be.PutUint32(s[0x40:], 1) // users
	if err := w.writeBlocks(s, runs[0].physical); err != nil {
		return err
	}
	return w.writeInode(&Node{Mode: ModeRegular | 0o600, ino: journalInode, links: 1}, b)
}

// writeMetadata writes bitmaps, group descriptors and superblocks.
func (w *writer) writeMetadata() error {
	gdt := make([]byte, w.geometry.gdtBlocks*BlockSize)
	var freeBlocks int64
	for g := range w.geometry.groups {
		inodeMap := make([]byte, BlockSize)
		inUse := min(max(w.inodes-g*w.geometry.inodesPerGroup, 0), w.geometry.inodesPerGroup)
		setBits(inodeMap, 0, inUse)
		setBits(inodeMap, w.geometry.inodesPerGroup, 8*BlockSize)
		if err := w.writeBlocks(w.blockMaps[g], w.geometry.blockBitmap(g)); err != nil {
			return err
		}
		if err := w.writeBlocks(inodeMap, w.geometry.inodeBitmap(g)); err != nil {
			return err
		}
		free := w.geometry.size(g) - w.used[g]
		freeBlocks += free
		w.putDescriptor(gdt[g*descSize:(g+1)*descSize], g, free, w.geometry.inodesPerGroup-inUse, inodeMap)
	}
	for g := range w.geometry.groups {
		if !hasSuperblock(g) {
			continue
		}
		if err := w.writeBlocks(gdt, w.geometry.first(g)+1); err != nil {
			return err
		}
		at := w.geometry.first(g) * BlockSize
		if g == 0 {
			at += 1024 // space for the boot sector
		}
		if _, err := w.out.WriteAt(w.superblock(g, freeBlocks), at); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) putDescriptor(d []byte, g, freeBlocks, freeInodes int64, inodeMap []byte) {
	for i, block := range []int64{w.geometry.blockBitmap(g), w.geometry.inodeBitmap(g), w.geometry.inodeTable(g)} {
		le.PutUint32(d[4*i:], uint32(block))
		le.PutUint32(d[0x20+4*i:], uint32(block>>32))
	}
	le.PutUint16(d[0x0C:], uint16(freeBlocks))
	le.PutUint16(d[0x0E:], uint16(freeInodes))
	le.PutUint16(d[0x10:], uint16(w.dirs[g]))
	le.PutUint16(d[0x12:], groupTableZeroed)
	le.PutUint16(d[0x1C:], uint16(freeInodes)) // never used, at the end of the table
	sum := checksum(w.checksumSeed(), w.blockMaps[g])
	le.PutUint16(d[0x18:], uint16(sum))
	le.PutUint16(d[0x38:], uint16(sum>>16))
	sum = checksum(w.checksumSeed(), inodeMap[:w.geometry.inodesPerGroup/8])
	le.PutUint16(d[0x1A:], uint16(sum))
	le.PutUint16(d[0x3A:], uint16(sum>>16))
	le.PutUint16(d[0x1E:], uint16(checksum(w.checksumSeed(), le.AppendUint32(nil, uint32(g)), d)))
}

func (w *writer) superblock(group, free int64) []byte {
	s := make([]byte, 1024)
	inodes := w.geometry.inodesPerGroup * w.geometry.groups
	reserved := w.geometry.blocks * reservedPercent / 100
	put32 := func(at int, v int64) { le.PutUint32(s[at:], uint32(v)) }
	put16 := func(at int, v int64) { le.PutUint16(s[at:], uint16(v)) }
	put32(0x00, inodes)
	put32(0x04, w.geometry.blocks)
	put32(0x08, reserved)
	put32(0x0C, free)
	put32(0x10, inodes-w.inodes)
	put32(0x18, 2) // block size 1024 << 2
	put32(0x1C, 2) // cluster size likewise
	put32(0x20, blocksPerGroup)
	put32(0x24, blocksPerGroup)
	put32(0x28, w.geometry.inodesPerGroup)
	put32(0x30, int64(w.params.Time)) // last write
	put16(0x36, 0xFFFF)               // no check after so many mounts
	put16(0x38, 0xEF53)
	put16(0x3A, 1)                    // cleanly unmounted
	put16(0x3C, 1)                    // on errors: continue
	put32(0x40, int64(w.params.Time)) // last check
	put32(0x4C, 1)                    // dynamic revision
	put32(0x54, firstInode)
	put16(0x58, inodeSize)
	put16(0x5A, group)
	put32(0x5C, compatFeatures)
	put32(0x60, incompatFeatures)
	put32(0x64, roFeatures)
	copy(s[0x68:], w.params.UUID[:])
	copy(s[0x78:0x88], w.params.Label)
	put32(0xE0, journalInode)
	copy(s[0xEC:], w.params.HashSeed[:])
	s[0xFC] = 1 // half MD4
	s[0xFD] = 1 // what follows is a copy of the journal's i_block and size
	put16(0xFE, descSize)
	put32(0x100, mountOptions)
	put32(0x108, int64(w.params.Time)) // made
	copy(s[0x10C:], w.journalRoot[:])
	put32(0x10C+4*16, w.geometry.journalBlocks*BlockSize)
	put32(0x150, w.geometry.blocks>>32)
	put32(0x154, reserved>>32)
	put32(0x158, free>>32)
	put16(0x15C, extraSize)
	put16(0x15E, extraSize)
	put32(0x160, 1) // directory hashes take characters as signed
	s[0x175] = 1    // checksums are crc32c
	put32(0x3FC, int64(checksum(^uint32(0), s[:0x3FC])))
	return s
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum continues a crc32c as the kernel does, without inverting the initial or the final value.
func checksum(initial uint32, parts ...[]byte) uint32 {
	for _, p := range parts {
		initial = ^crc32.Update(^initial, castagnoli, p)
	}
	return initial
}

// checksumSeed returns the seed of all checksums except that of the superblock. It depends on the UUID, so a block of another file system
// has an invalid checksum.
func (w *writer) checksumSeed() uint32 { return checksum(^uint32(0), w.params.UUID[:]) }

// inodeChecksumSeed returns the seed of the checksums of one inode of generation 0 and its blocks.
func (w *writer) inodeChecksumSeed(ino uint32) uint32 {
	return checksum(w.checksumSeed(), le.AppendUint32(nil, ino), make([]byte, 4))
}
