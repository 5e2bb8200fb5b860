package fat32

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	attrLabel     = 0x08
	attrDir       = 0x10
	attrFile      = 0x20
	attrLong      = 0x0F
	unitsPerEntry = 13 // UTF-16 units of a long name in one entry
)

// assignShortNames sets the 8.3 name of every entry. It refuses names that FAT does not allow or does not distinguish.
func assignShortNames(entries []*Node, path string) error {
	byFoldedName := map[string]string{}
	taken := map[[11]byte]bool{}
	for _, e := range entries {
		if err := checkName(e.Name); err != nil {
			return fmt.Errorf("fat32: %s/%s: %w", path, e.Name, err)
		}
		folded := strings.ToUpper(e.Name)
		if other, ok := byFoldedName[folded]; ok {
			return fmt.Errorf("fat32: %s/%s and %s: FAT does not tell upper from lower case; rename one", path, e.Name, other)
		}
		byFoldedName[folded] = e.Name
		if s, ok := exactShortName(e.Name); ok {
			e.short = s
			taken[s] = true
		}
	}
	for _, e := range entries {
		if _, ok := exactShortName(e.Name); ok {
			continue
		}
		for n := 1; ; n++ {
			if s := numberedShortName(e.Name, n); !taken[s] {
				e.short = s
				taken[s] = true
				break
			}
		}
	}
	return nil
}

func checkName(name string) error {
	if name == "" || len(utf16.Encode([]rune(name))) > 255 {
		return fmt.Errorf("a name has 1 to 255 characters")
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("FAT has names in Unicode, and this one is no UTF-8")
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return r < 0x20 || strings.ContainsRune(`"*/:<>?\|`, r) }); i >= 0 {
		return fmt.Errorf("FAT allows no %q in a name", name[i])
	}
	if strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") {
		return fmt.Errorf("FAT allows no dot or space at the end of a name")
	}
	return nil
}

func isShortNameChar(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("$%'-_@~`!(){}^#&", r)
}

// exactShortName returns the 8.3 form of a name that needs no long name. ok is false for a name that does.
func exactShortName(name string) (s [11]byte, ok bool) {
	base, ext, _ := strings.Cut(name, ".")
	if base == "" || len(base) > 8 || len(ext) > 3 || strings.HasSuffix(name, ".") {
		return s, false
	}
	for _, r := range base + ext {
		if !isShortNameChar(r) {
			return s, false
		}
	}
	copy(s[:], fmt.Sprintf("%-8s%-3s", base, ext))
	return s, true
}

// numberedShortName returns the 8.3 form with a number, such as LONGNA~1.EXT.
func numberedShortName(name string, n int) (s [11]byte) {
	shorten := func(part string, limit int) string {
		var b strings.Builder
		for _, r := range strings.ToUpper(part) {
			if b.Len() < limit && isShortNameChar(r) {
				b.WriteRune(r)
			}
		}
		return b.String()
	}
	base, ext := name, ""
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		base, ext = name[:i], name[i+1:]
	}
	tail := fmt.Sprintf("~%d", n)
	copy(s[:], fmt.Sprintf("%-8s%-3s", shorten(base, 8-len(tail))+tail, shorten(ext, 3)))
	return s
}

func directoryEntryLength(e *Node) int {
	if _, ok := exactShortName(e.Name); ok {
		return 32
	}
	units := len(utf16.Encode([]rune(e.Name)))
	return 32 * (1 + (units+unitsPerEntry-1)/unitsPerEntry)
}

// encodeDirectory returns the content of a directory. parent is nil for the root, which has the label instead of the dot entries.
func (w *writer) encodeDirectory(n, parent *Node) []byte {
	var b []byte
	if parent == nil {
		var label [11]byte
		copy(label[:], fmt.Sprintf("%-11.11s", w.params.Label))
		b = append(b, w.encodeEntry(label, attrLabel, 0, 0)...)
	} else {
		up := parent.cluster
		if up == 2 {
			up = 0 // 0 stands for the root here
		}
		b = append(b, w.encodeEntry([11]byte([]byte(".          ")), attrDir, n.cluster, 0)...)
		b = append(b, w.encodeEntry([11]byte([]byte("..         ")), attrDir, up, 0)...)
	}
	for _, e := range n.Entries {
		if _, ok := exactShortName(e.Name); !ok {
			b = append(b, encodeLongName(e)...)
		}
		attr := byte(attrFile)
		if e.Dir {
			attr = attrDir
		}
		b = append(b, w.encodeEntry(e.short, attr, e.cluster, e.Size)...)
	}
	return b
}

func (w *writer) encodeEntry(name [11]byte, attr byte, cluster uint32, size int64) []byte {
	e := make([]byte, 32)
	copy(e, name[:])
	e[11] = attr
	date, clock := dosTime(w.params.Time)
	le.PutUint16(e[14:], clock)
	le.PutUint16(e[16:], date)
	le.PutUint16(e[18:], date)
	le.PutUint16(e[20:], uint16(cluster>>16))
	le.PutUint16(e[22:], clock)
	le.PutUint16(e[24:], date)
	le.PutUint16(e[26:], uint16(cluster))
	le.PutUint32(e[28:], uint32(size))
	return e
}

// encodeLongName returns the entries of the long name. They hold its pieces, the last one first, and a checksum of the short name.
func encodeLongName(n *Node) []byte {
	var sum byte
	for _, c := range n.short {
		sum = sum>>1 | sum<<7
		sum += c
	}
	units := utf16.Encode([]rune(n.Name))
	count := (len(units) + unitsPerEntry - 1) / unitsPerEntry
	if len(units) < count*unitsPerEntry {
		units = append(units, 0)
	}
	for len(units) < count*unitsPerEntry {
		units = append(units, 0xFFFF)
	}
	var out []byte
	for i := count - 1; i >= 0; i-- {
		e := make([]byte, 32)
		e[0] = byte(i + 1)
		if i == count-1 {
			e[0] |= 0x40
		}
		e[11], e[13] = attrLong, sum
		for k, at := range []int{1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30} {
			le.PutUint16(e[at:], units[i*unitsPerEntry+k])
		}
		out = append(out, e...)
	}
	return out
}

func dosTime(t time.Time) (date, clock uint16) {
	t = t.UTC()
	if t.Year() < 1980 {
		t = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return uint16(t.Year()-1980)<<9 | uint16(t.Month())<<5 | uint16(t.Day()), uint16(t.Hour())<<11 | uint16(t.Minute())<<5 | uint16(t.Second()/2)
}
