package ext4

import (
	"encoding/binary"
	"fmt"
	"io"
)

const (
	fastSymlink   = 60    // a shorter target is stored in the inode
	maxSymlink    = 4095  // PATH_MAX without its NUL
	maxExtent     = 32768 // blocks; more would mean "not initialised"
	extentMagic   = 0xF30A
	leafEntries   = (BlockSize - 12) / 12
	rootEntries   = 4
	maxTree       = rootEntries * leafEntries
	flagExtents   = 0x80000
	extraSize     = 32 // bytes of the inode beyond the classic 128
	xattrMagic    = 0xEA020000
	xattrSecurity = 6 // name index of "security."
	maxLinks      = 65000
)

var le = binary.LittleEndian

// inodeBody is the content that an inode refers to.
type inodeBody struct {
	size   int64
	blocks int64 // of 4 KiB, extent blocks included
	flags  uint32
	block  [60]byte
}

func (w *writer) writeNode(_ string, n, parent *Node) error {
	b, err := w.writeBody(n, parent)
	if err != nil {
		return err
	}
	if n.fileType() == ModeDir {
		w.dirs[int64(n.ino-1)/w.geometry.inodesPerGroup]++
	}
	return w.writeInode(n, b)
}

func (w *writer) writeBody(n, parent *Node) (inodeBody, error) {
	switch n.fileType() {
	case ModeDir:
		return w.writeDirectory(n, parent)
	case ModeRegular:
		return w.writeFile(n)
	case ModeSymlink:
		return w.writeSymlink(n)
	case ModeChar, ModeBlock:
		return deviceBody(n), nil
	case ModeFIFO, ModeSocket:
		return inodeBody{}, nil
	default:
		return inodeBody{}, fmt.Errorf("mode %o is of no known kind", n.Mode)
	}
}

// deviceBody encodes the device number as new_encode_dev of the kernel does.
func deviceBody(n *Node) inodeBody {
	var b inodeBody
	if n.Major < 256 && n.Minor < 256 {
		le.PutUint32(b.block[0:], n.Major<<8|n.Minor)
		return b
	}
	le.PutUint32(b.block[4:], n.Minor&0xff|n.Major<<8|(n.Minor&^0xff)<<12)
	return b
}

func (w *writer) writeSymlink(n *Node) (inodeBody, error) {
	if len(n.Target) == 0 || len(n.Target) > maxSymlink {
		return inodeBody{}, fmt.Errorf("the target of a symbolic link has 1 to %d bytes, this one %d", maxSymlink, len(n.Target))
	}
	if len(n.Target) < fastSymlink {
		b := inodeBody{size: int64(len(n.Target))}
		copy(b.block[:], n.Target)
		return b, nil
	}
	b, runs, err := w.allocateExtents(n.ino, int64(len(n.Target)))
	if err != nil {
		return b, err
	}
	block := make([]byte, BlockSize)
	copy(block, n.Target)
	return b, w.writeBlocks(block, runs[0].physical)
}

func (w *writer) writeFile(n *Node) (inodeBody, error) {
	b, runs, err := w.allocateExtents(n.ino, n.Size)
	if err != nil || n.Size == 0 {
		return b, err
	}
	r, err := n.Open()
	if err != nil {
		return b, err
	}
	defer r.Close()
	buf := make([]byte, min(1<<20, (n.Size+BlockSize-1)/BlockSize*BlockSize))
	left := n.Size
	for _, run := range runs {
		for at := int64(0); at < run.length; at += int64(len(buf)) / BlockSize {
			chunk := buf[:min(int64(len(buf)), (run.length-at)*BlockSize)]
			want := min(left, int64(len(chunk)))
			clear(chunk[want:])
			if _, err := io.ReadFull(r, chunk[:want]); err != nil {
				return b, fmt.Errorf("read: %w, expected %d bytes more: the file changed while it was packed", err, left)
			}
			left -= want
			if err := w.writeUnlessZero(chunk, run.physical+at); err != nil {
				return b, err
			}
		}
	}
	if k, _ := io.ReadFull(r, buf[:1]); k > 0 {
		return b, fmt.Errorf("expected %d bytes, seen more: the file changed while it was packed", n.Size)
	}
	return b, nil
}

// writeUnlessZero skips blocks of zeros: the output already reads as zeros, and stays sparse.
func (w *writer) writeUnlessZero(b []byte, block int64) error {
	for _, c := range b {
		if c != 0 {
			return w.writeBlocks(b, block)
		}
	}
	return nil
}

// allocateExtents allocates blocks for size bytes and writes the extent tree.
func (w *writer) allocateExtents(ino uint32, size int64) (inodeBody, []extent, error) {
	b := inodeBody{size: size, blocks: (size + BlockSize - 1) / BlockSize, flags: flagExtents}
	runs, err := w.allocate(b.blocks)
	if err != nil {
		return b, nil, err
	}
	tree := extentTreeBlocks(int64(len(runs)))
	if len(runs) > maxTree {
		return b, nil, fmt.Errorf("%d bytes are more than one file can have here", size)
	}
	b.blocks += tree
	if tree == 0 {
		putExtents(b.block[:], runs, rootEntries)
		return b, runs, nil
	}
	return b, runs, w.writeExtentTree(ino, b.block[:], runs)
}

// extentTreeBlocks returns the number of leaf blocks for that many extents.
func extentTreeBlocks(extents int64) int64 {
	if extents <= rootEntries {
		return 0
	}
	return (extents + leafEntries - 1) / leafEntries
}

// writeExtentTree writes the leaves and puts their index into root.
func (w *writer) writeExtentTree(ino uint32, root []byte, runs []extent) error {
	count := extentTreeBlocks(int64(len(runs)))
	extentHeader(root, int(count), rootEntries, 1)
	for i := range count {
		leaf, err := w.allocate(1)
		if err != nil {
			return err
		}
		part := runs[i*leafEntries : min((i+1)*leafEntries, int64(len(runs)))]
		block := make([]byte, BlockSize)
		putExtents(block, part, leafEntries)
		le.PutUint32(block[BlockSize-4:], checksum(w.inodeChecksumSeed(ino), block[:BlockSize-4]))
		if err := w.writeBlocks(block, leaf[0].physical); err != nil {
			return err
		}
		e := root[12+12*i:]
		le.PutUint32(e[0:], uint32(part[0].logical))
		le.PutUint32(e[4:], uint32(leaf[0].physical))
		le.PutUint16(e[8:], uint16(leaf[0].physical>>32))
	}
	return nil
}

func extentHeader(b []byte, entries, limit, depth int) {
	le.PutUint16(b[0:], extentMagic)
	le.PutUint16(b[2:], uint16(entries))
	le.PutUint16(b[4:], uint16(limit))
	le.PutUint16(b[6:], uint16(depth))
}

func putExtents(b []byte, runs []extent, limit int) {
	extentHeader(b, len(runs), limit, 0)
	for i, r := range runs {
		e := b[12+12*i:]
		le.PutUint32(e[0:], uint32(r.logical))
		le.PutUint16(e[4:], uint16(r.length))
		le.PutUint16(e[6:], uint16(r.physical>>32))
		le.PutUint32(e[8:], uint32(r.physical))
	}
}

func (w *writer) writeInode(n *Node, b inodeBody) error {
	links := n.links
	if n.fileType() == ModeDir && links > maxLinks {
		links = 1 // dir_nlink: not counted
	}
	if links > maxLinks {
		return fmt.Errorf("%d hard links, at most %d are possible", links, maxLinks)
	}
	i := make([]byte, inodeSize)
	le.PutUint16(i[0x00:], n.Mode)
	le.PutUint16(i[0x02:], uint16(n.UID))
	le.PutUint32(i[0x04:], uint32(b.size))
	for _, at := range []int{0x08, 0x0C, 0x10, 0x90} { // access, change, modification, creation
		le.PutUint32(i[at:], w.params.Time)
	}
	le.PutUint16(i[0x18:], uint16(n.GID))
	le.PutUint16(i[0x1A:], uint16(links))
	sectors := b.blocks * (BlockSize / 512)
	le.PutUint32(i[0x1C:], uint32(sectors))
	le.PutUint32(i[0x20:], b.flags)
	copy(i[0x28:0x64], b.block[:])
	le.PutUint32(i[0x6C:], uint32(b.size>>32))
	le.PutUint16(i[0x74:], uint16(sectors>>32))
	le.PutUint16(i[0x78:], uint16(n.UID>>16))
	le.PutUint16(i[0x7A:], uint16(n.GID>>16))
	le.PutUint16(i[0x80:], extraSize)
	if err := putCapability(i[128+extraSize:], n.Capability); err != nil {
		return err
	}
	sum := checksum(w.inodeChecksumSeed(n.ino), i)
	le.PutUint16(i[0x7C:], uint16(sum))
	le.PutUint16(i[0x82:], uint16(sum>>16))
	_, err := w.out.WriteAt(i, w.geometry.inodeOffset(n.ino))
	return err
}

// putCapability writes security.capability, the only extended attribute that is supported, into the rest of the inode.
func putCapability(room, value []byte) error {
	if value == nil {
		return nil
	}
	const name = "capability"
	at := (len(room) - len(value)) &^ 3
	if at < 4+16+12+4 {
		return fmt.Errorf("security.capability has %d bytes: no version known is that long", len(value))
	}
	le.PutUint32(room[0:], xattrMagic)
	e := room[4:]
	e[0], e[1] = byte(len(name)), xattrSecurity
	le.PutUint16(e[2:], uint16(at-4)) // counted from the first entry
	le.PutUint32(e[8:], uint32(len(value)))
	copy(e[16:], name)
	copy(room[at:], value)
	return nil
}

// fileTypes are the file types in directory entries, by the file type in the mode.
var fileTypes = map[uint16]byte{
	ModeRegular: 1, ModeDir: 2, ModeChar: 3, ModeBlock: 4, ModeFIFO: 5, ModeSocket: 6, ModeSymlink: 7,
}

const (
	dirTail = 12 // bytes of the checksum's entry
	dirRoom = BlockSize - dirTail
)

type dirEntry struct {
	name     string
	ino      uint32
	fileType uint16
}

func (e dirEntry) length() int { return 8 + (len(e.name)+3)&^3 }

// directoryLayout returns the entries of each block: "." and ".." first, then the others in their order.
func directoryLayout(n *Node) [][]dirEntry {
	entries := make([]dirEntry, 0, len(n.Entries)+2)
	entries = append(entries, dirEntry{".", n.ino, ModeDir}, dirEntry{"..", 0, ModeDir})
	for _, e := range n.Entries {
		entries = append(entries, dirEntry{e.Name, e.Node.ino, e.Node.fileType()})
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

func (w *writer) writeDirectory(n, parent *Node) (inodeBody, error) {
	layout := directoryLayout(n)
	layout[0][1].ino = parent.ino
	b, runs, err := w.allocateExtents(n.ino, int64(len(layout))*BlockSize)
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

// dirBlock encodes the entries of a block. The last one extends to the checksum, which has the form of an entry without a name.
func (w *writer) dirBlock(ino uint32, entries []dirEntry) []byte {
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
		block[at+7] = fileTypes[e.fileType]
		copy(block[at+8:], e.name)
		at += length
	}
	le.PutUint16(block[dirRoom+4:], dirTail)
	block[dirRoom+7] = 0xDE
	le.PutUint32(block[dirRoom+8:], checksum(w.inodeChecksumSeed(ino), block[:dirRoom]))
	return block
}
