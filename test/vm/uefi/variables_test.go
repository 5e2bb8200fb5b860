package uefi

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/test/bmc"
)

// writeStore writes a firmware volume with an empty variable store of so many bytes.
func writeStore(t *testing.T, size int) string {
	t.Helper()
	const header = 0x48
	content := bytes.Repeat([]byte{0xff}, header+size) // erased flash memory
	copy(content[0x28:], "_FVH")
	binary.LittleEndian.PutUint16(content[0x30:], header)
	copy(content[header:], authenticatedStore[:])
	binary.LittleEndian.PutUint32(content[header+16:], uint32(size))
	file := filepath.Join(t.TempDir(), "vars.fd")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// present returns the data of the variables that are not deleted, by the name.
func present(t *testing.T, file string) map[string][]byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStore(content)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for at := s.begin; at < s.end; {
		header, size := s.variableAt(at)
		name := content[at+binary.Size(header):][:header.NameSize]
		if header.State == variableAdded {
			out[string(bytes.ReplaceAll(name, []byte{0}, nil))] = content[at+binary.Size(header)+len(name):][:header.DataSize]
		}
		at += size
	}
	return out
}

func TestTheNextBootIsWrittenOnceAndRemoved(t *testing.T) {
	file := writeStore(t, 4096)
	if err := changeStore(file, func(s *store) error { return s.add("BootOrder", []byte{1, 0}) }); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{"http://10.0.2.2/a.efi", "https://10.0.2.2/other.efi", ""} {
		if err := WriteBootNext(file, uri); err != nil {
			t.Fatal(err)
		}
		got := present(t, file)
		if !slices.Equal(got["BootOrder"], []byte{1, 0}) {
			t.Errorf("another variable is %v", got["BootOrder"])
		}
		if uri == "" {
			if len(got) != 1 {
				t.Errorf("left: %v", got)
			}
			continue
		}
		if len(got) != 3 || !slices.Equal(got["BootNext"], []byte{0x07, 0xb0}) || !bytes.Contains(got["BootB007"], []byte(uri)) {
			t.Errorf("after %s: %q", uri, got)
		}
	}
}

func TestWhatIsNoStoreOrFullIsRefused(t *testing.T) {
	if err := WriteBootNext(writeStore(t, 200), "http://10.0.2.2/a.efi"); err == nil {
		t.Error("a store that is full took the variables")
	}
	file := filepath.Join(t.TempDir(), "nothing")
	if err := os.WriteFile(file, []byte("no firmware"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteBootNext(file, ""); err == nil {
		t.Error("a file that is no firmware volume was changed")
	}
}

func TestEachCertificateIsAListOfItsOwn(t *testing.T) {
	authority, err := bmc.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	one := SignatureLists(string(authority.PEM()))
	if size := binary.LittleEndian.Uint32(one[16:]); int(size) != len(one) || !bytes.Equal(one[:16], certX509[:]) {
		t.Errorf("the list says that it has %d of %d bytes", size, len(one))
	}
	if two := SignatureLists(string(authority.PEM()) + string(authority.PEM())); !bytes.Equal(two, append(slices.Clone(one), one...)) {
		t.Error("two certificates are not two lists")
	}
}
