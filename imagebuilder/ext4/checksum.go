package ext4

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crc continues a crc32c as the kernel does: nothing is inverted at either end.
func crc(seed uint32, parts ...[]byte) uint32 {
	for _, p := range parts {
		seed = ^crc32.Update(^seed, castagnoli, p)
	}
	return seed
}

// seed of all checksums but the superblock's: a block of another file system never passes for one of this.
func (w *Writer) seed() uint32 { return crc(^uint32(0), w.params.UUID[:]) }

// inodeSeed is where the checksums of what belongs to one inode of generation 0 begin.
func (w *Writer) inodeSeed(ino uint32) uint32 {
	return crc(w.seed(), le.AppendUint32(nil, ino), make([]byte, 4))
}
