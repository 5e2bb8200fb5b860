package fat32

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// readNames reads a directory as FAT's specification says: pieces of a long name stand before its entry, the last one first, with a checksum of the short name.
func readNames(t *testing.T, directory []byte) (names []string, short [][11]byte) {
	t.Helper()
	var units []uint16
	var sum byte
	for entry := range slices.Chunk(directory, 32) {
		switch {
		case entry[0] == 0 || entry[0] == 0xE5:
			t.Errorf("an entry reads as a free one: %q", entry)
		case entry[11] == attrLong:
			var piece []uint16
			for _, at := range []int{1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30} {
				piece = append(piece, le.Uint16(entry[at:]))
			}
			units, sum = append(piece, units...), entry[13]
		case entry[11] != attrLabel && entry[0] != '.':
			own := [11]byte(entry[:11])
			var want byte
			for _, c := range own {
				want = want>>1 | want<<7
				want += c
			}
			name := strings.TrimRight(string(own[:8]), " ")
			if ext := strings.TrimRight(string(own[8:]), " "); ext != "" {
				name += "." + ext
			}
			if units != nil {
				if end := slices.Index(units, 0); end >= 0 {
					units = units[:end]
				}
				name = string(utf16.Decode(units))
				if want != sum {
					t.Errorf("%q has the checksum %x, and its short name %x", name, sum, want)
				}
			}
			names, short, units = append(names, name), append(short, own), nil
		}
	}
	return names, short
}

// FuzzNames: names that are accepted read back as they were, and each entry has a short name of its own.
func FuzzNames(f *testing.F) {
	f.Add("BOOTX64.EFI/grub.cfg/GRUB~1.CFG/kernel-6.12.1-amd64/größe.txt")
	f.Add("a b/A.B.C/.hidden/ÿ/\xff/\xfe/😀/con/å.EFI/aux")
	f.Fuzz(func(t *testing.T, text string) {
		given := strings.Split(text, "/")
		if len(given) > 64 {
			return
		}
		root := &Node{Dir: true}
		for _, name := range given {
			root.Entries = append(root.Entries, &Node{Name: name})
		}
		if assignShortNames(root.Entries, "") != nil {
			return
		}
		w := &writer{}
		directory := w.encodeDirectory(root, root)
		length := 64
		for _, e := range root.Entries {
			length += directoryEntryLength(e)
		}
		if len(directory) != length {
			t.Errorf("%q: %d bytes, and %d were reserved", given, len(directory), length)
		}
		names, short := readNames(t, directory)
		if !slices.Equal(names, given) {
			t.Errorf("%q reads back as %q", given, names)
		}
		slices.SortFunc(short, func(a, b [11]byte) int { return bytes.Compare(a[:], b[:]) })
		if len(slices.Compact(short)) != len(given) {
			t.Errorf("%q: two entries have one short name", given)
		}
	})
}
