package ext4

// fileTypes of directory entries, by the type bits of the mode.
var fileTypes = map[uint16]byte{
	ModeRegular: 1, ModeDir: 2, ModeChar: 3, ModeBlock: 4, ModeFIFO: 5, ModeSocket: 6, ModeSymlink: 7,
}

const (
	dirTail = 12 // bytes of the checksum's entry
	dirRoom = BlockSize - dirTail
)

type dirEntry struct {
	name string
	ino  uint32
	kind uint16
}

func (e dirEntry) length() int { return 8 + (len(e.name)+3)&^3 }

// directoryLayout says which entries lie in which block: "." and ".." first, the others in their order.
func directoryLayout(n *Node) [][]dirEntry {
	entries := make([]dirEntry, 0, len(n.Entries)+2)
	entries = append(entries, dirEntry{".", n.ino, ModeDir}, dirEntry{"..", 0, ModeDir})
	for _, e := range n.Entries {
		entries = append(entries, dirEntry{e.Name, e.Node.ino, e.Node.kind()})
	}
	var blocks [][]dirEntry
	room := 0
	for _, e := range entries {
		if e.length() > room {
			blocks = append(blocks, nil)
			room = dirRoom
		}
		last := len(blocks) - 1
		blocks[last] = append(blocks[last], e)
		room -= e.length()
	}
	return blocks
}

func (w *Writer) writeDirectory(n, parent *Node) (body, error) {
	layout := directoryLayout(n)
	layout[0][1].ino = parent.ino
	b, runs, err := w.place(n.ino, int64(len(layout))*BlockSize)
	if err != nil {
		return b, err
	}
	for _, run := range runs {
		for i := range run.length {
			if err := w.writeBlocks(w.dirBlock(n.ino, layout[run.logical+i]), run.physical+i); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// dirBlock encodes entries; the last one reaches to the checksum, which poses as an entry without a name.
func (w *Writer) dirBlock(ino uint32, entries []dirEntry) []byte {
	block := make([]byte, BlockSize)
	at := 0
	for i, e := range entries {
		length := e.length()
		if i == len(entries)-1 {
			length = dirRoom - at
		}
		le.PutUint32(block[at:], e.ino)
		le.PutUint16(block[at+4:], uint16(length))
		block[at+6] = byte(len(e.name))
		block[at+7] = fileTypes[e.kind]
		copy(block[at+8:], e.name)
		at += length
	}
	le.PutUint16(block[dirRoom+4:], dirTail)
	block[dirRoom+7] = 0xDE
	le.PutUint32(block[dirRoom+8:], crc(w.inodeSeed(ino), block[:dirRoom]))
	return block
}
