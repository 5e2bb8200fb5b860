package ext4

import (
	"slices"
	"strings"
	"testing"
)

// readDirectory returns the entries of a directory's blocks as the kernel's documentation of ext4 says: each has its length, and the last one of a block extends to
// the checksum.
func readDirectory(t *testing.T, blocks [][]byte) (names []string, inodes []uint32) {
	t.Helper()
	for _, block := range blocks {
		for at := 0; at < dirRoom; {
			length, size := int(le.Uint16(block[at+4:])), int(block[at+6])
			if length < 8+size || length%4 != 0 || at+length > dirRoom {
				t.Fatalf("an entry of %d bytes at %d with a name of %d", length, at, size)
			}
			names, inodes = append(names, string(block[at+8:][:size])), append(inodes, le.Uint32(block[at:]))
			at += length
		}
	}
	return names, inodes
}

// FuzzDirectories: names that are accepted read back as they were, in whatever number of blocks.
func FuzzDirectories(f *testing.F) {
	f.Add("a\nlost+found\n"+strings.Repeat("n", 255), 3)
	f.Add("a/b\n..\n\x00\n\xff\ngröße", 200)
	f.Fuzz(func(t *testing.T, text string, times int) {
		if len(text) > 1<<12 || times < 1 || times > 300 {
			return
		}
		dir := &Node{Mode: ModeDir, ino: 2}
		var given []string
		for i, name := range strings.Split(text, "\n") {
			for n := range times {
				if n > 0 {
					name += string(rune('0' + (i+n)%10))
				}
				given = append(given, name)
				dir.Entries = append(dir.Entries, Entry{Name: name, Node: &Node{Mode: ModeRegular, ino: uint32(len(given) + firstInode)}})
			}
		}
		err := countLinks(dir)
		for _, name := range given {
			if err == nil && (len(name) > 255 || name == ".." || strings.ContainsAny(name, "/\x00")) {
				t.Errorf("%q is accepted", name)
			}
		}
		if err != nil {
			return
		}
		w := &writer{}
		var blocks [][]byte
		for _, entries := range directoryLayout(dir) {
			blocks = append(blocks, w.dirBlock(2, entries))
		}
		names, inodes := readDirectory(t, blocks)
		if !slices.Equal(names, append([]string{".", ".."}, given...)) {
			t.Errorf("%q reads back as %q", given, names)
		}
		for i, e := range dir.Entries {
			if inodes[i+2] != e.Node.ino {
				t.Errorf("%q leads to inode %d, expected %d", e.Name, inodes[i+2], e.Node.ino)
			}
		}
		if longest := 8 + 256; len(blocks) > 1+(len(given)+2)/(dirRoom/longest) {
			t.Errorf("%d names take %d blocks", len(given), len(blocks))
		}
	})
}
