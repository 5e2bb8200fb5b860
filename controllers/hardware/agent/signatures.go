package agent

import (
	"io"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/gpt"
)

const (
	// clearedStart and clearedEnd are the lengths of the start and of the end of every partition that a metadata erase clears. Of the signatures
	// that lie at the end of a device, that of Promise's RAID is the farthest from it: 3087 sectors.
	clearedStart, clearedEnd = 1 << 20, 2 << 20
	// clearedBlock is the length that is cleared at the place of a signature.
	clearedBlock = 64 << 10
	// luksHeader is the length of the header and the key slots of an encrypted volume, by default.
	luksHeader = 16 << 20
)

// signatureOffsets are the places behind the first MiB of a device where file systems, RAIDs and volume managers keep a signature by which the
// device is recognized again (libblkid in util-linux, the formats' documentation).
var signatureOffsets = []int64{
	1 << 20,                                  // VMFS; the second header of LUKS2
	2 << 20,                                  // VMFS, LUKS2
	4 << 20,                                  // LUKS2
	64 << 20,                                 // the first copy of the superblock of btrfs
	256 << 30,                                // the second copy of it
	1 << 30, 10 << 30, 100 << 30, 1000 << 30, // copies of the label of Ceph's BlueStore
}

// luksMarks begin the first and the second header of an encrypted volume. The copies of a header are found by its offset, the key slots
// behind it are not.
var luksMarks = []string{"LUKS\xba\xbe", "SKUL\xba\xbe"}

// signatureAreas returns the ranges of an extent that a metadata erase clears: its end, the places of signatures, and at last its start. A
// short extent is cleared as a whole.
func signatureAreas(disk io.ReaderAt, extent gpt.Extent) []gpt.Extent {
	if extent.Size <= clearedStart+clearedEnd {
		return []gpt.Extent{{Offset: extent.Offset, Size: extent.Size}}
	}
	start := int64(clearedStart)
	if isEncrypted(disk, extent) {
		start = luksHeader
	}
	end := extent.Size - clearedEnd
	areas := []gpt.Extent{{Offset: extent.Offset + end, Size: clearedEnd}}
	for _, offset := range signatureOffsets {
		if offset >= start && offset < end {
			areas = append(areas, gpt.Extent{Offset: extent.Offset + offset, Size: min(clearedBlock, end-offset)})
		}
	}
	return append(areas, gpt.Extent{Offset: extent.Offset, Size: min(start, end)})
}

// isEncrypted reports whether the extent begins with the header of an encrypted volume, or holds its copy. An extent that cannot be read is
// cleared like any other, and that fails.
func isEncrypted(disk io.ReaderAt, extent gpt.Extent) bool {
	for offset := int64(0); offset <= 4<<20 && offset < extent.Size-int64(len(luksMarks[0])); offset = max(2*offset, 16<<10) {
		mark := make([]byte, len(luksMarks[0]))
		if _, err := disk.ReadAt(mark, extent.Offset+offset); err != nil {
			return false
		}
		for _, known := range luksMarks {
			if string(mark) == known {
				return true
			}
		}
	}
	return false
}
