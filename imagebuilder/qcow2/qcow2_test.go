package qcow2_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/imagebuilder/qcow2"
	"github.com/ingot-dev/ingot/test/require"
)

// disk returns the content of a disk with data, text that compresses, and zeros, that does not end with a cluster.
func disk(size int) []byte {
	out := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	for at := 0; at < size; at += 48 << 10 {
		part := out[at:min(size, at+48<<10)]
		switch at / (48 << 10) % 4 {
		case 0:
			if _, err := random.Read(part); err != nil {
				panic(err)
			}
		case 1:
			copy(part, bytes.Repeat([]byte("the same text again and again, "), len(part)/31))
		}
	}
	return out
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func readAll(t *testing.T, raw []byte) ([]byte, error) {
	t.Helper()
	image, err := qcow2.Open(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, err
	}
	defer image.Close()
	out, err := io.ReadAll(image)
	if err == nil && int64(len(out)) != image.Size() {
		t.Errorf("%d bytes were read of a disk of %d", len(out), image.Size())
	}
	return out, err
}

// makeImage converts the content with qemu-img.
func makeImage(t *testing.T, content []byte, args ...string) []byte {
	t.Helper()
	program := require.Tool(t, "qemu-img", "apt-get install qemu-utils")
	dir := t.TempDir()
	raw, image := filepath.Join(dir, "disk.raw"), filepath.Join(dir, "disk.qcow2")
	if err := os.WriteFile(raw, content, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, program, append(append([]string{"convert", "-f", "raw", "-O", "qcow2"}, args...), raw, image)...)
	out, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheDiskIsTheOneThatQEMUHasWritten(t *testing.T) {
	content := disk(3<<20 + 512)
	for name, args := range map[string][]string{
		"version 3": {}, "version 2": {"-o", "compat=0.10"}, "zlib": {"-c"}, "zstd": {"-c", "-o", "compression_type=zstd"},
		"small clusters": {"-c", "-o", "cluster_size=512"}, "large clusters": {"-o", "cluster_size=2M"}, "large compressed clusters": {"-c", "-o", "cluster_size=2M"},
		"preallocated": {"-o", "preallocation=falloc"}, "zero clusters": {"-S", "0"}, "old compressed": {"-c", "-o", "compat=0.10"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAll(t, makeImage(t, content, args...))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, content) {
				t.Errorf("the disk differs: %d bytes, expected %d", len(got), len(content))
			}
		})
	}
}

func TestAnExplicitZeroClusterHidesWhatIsBelow(t *testing.T) {
	program := require.Tool(t, "qemu-io", "apt-get install qemu-utils")
	file := filepath.Join(t.TempDir(), "disk.qcow2")
	if err := os.WriteFile(file, makeImage(t, bytes.Repeat([]byte{7}, 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, program, "-c", "write -z 128k 64k", file)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte{7}, 1<<20)
	clear(want[128<<10 : 192<<10])
	if got, err := readAll(t, raw); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the disk differs, error %v", err)
	}
}

func TestImagesThatNeedOtherFilesOrAreDamagedAreRefused(t *testing.T) {
	good := makeImage(t, disk(1<<20))
	set := func(at int, value uint64, size int) []byte {
		out := bytes.Clone(good)
		b := binary.BigEndian.AppendUint64(nil, value)
		copy(out[at:], b[8-size:])
		return out
	}
	l1 := binary.BigEndian.Uint64(good[40:])
	l2 := binary.BigEndian.Uint64(good[l1:]) & 0x00fffffffffffe00
	for name, c := range map[string]struct {
		image []byte
		want  string
	}{
		"empty": {nil, "qcow2"}, "text": {[]byte(strings.Repeat("hello", 100)), "qcow2"}, "version 4": {set(4, 4, 4), "version"},
		"backing file": {set(8, 512, 8), "backing file"}, "encrypted": {set(32, 1, 4), "encrypted"}, "dirty": {set(72, 1, 8), "dirty"},
		"corrupt": {set(72, 2, 8), "corrupt"}, "external data": {set(72, 4, 8), "another file"}, "subclusters": {set(72, 16, 8), "subclusters"},
		"a new feature": {set(72, 1<<40, 8), "not known"}, "cluster bits": {set(20, 63, 4), "clusters"}, "huge disk": {set(24, 1<<62, 8), "first table"},
		"no disk": {set(24, 0, 8), "sectors"}, "odd disk": {set(24, 513, 8), "sectors"}, "l1 outside": {set(40, 1<<40, 8), "first table"},
		"l1 entries": {set(36, 1<<31, 4), "first table"}, "l2 outside": {set(int(l1), 1<<40, 8), "table is not inside"},
		"l2 is l1's data": {set(int(l1), l2+512, 8), "table is not inside"},
		"cluster outside": {set(int(l2), 1<<40, 8), "not inside the file"}, "odd cluster": {set(int(l2), l2+512, 8), "not where clusters are"},
		"a cluster twice": {set(int(l2)+8, binary.BigEndian.Uint64(good[l2:]), 8), "share"},
		"cut":             {good[:len(good)/2], "cut or damaged"}, "compressed outside": {set(int(l2), 1<<62|1<<50, 8), "not inside the file"},
		"compression": {set(72, 8, 8), ""},
	} {
		if c.want == "" {
			continue
		}
		if _, err := readAll(t, c.image); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected an error with %q", name, err, c.want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	header := make([]byte, 4096)
	copy(header, qcow2.Magic)
	for at, value := range map[int]uint32{4: 2, 20: 9, 28: 4096, 36: 1, 44: 512} {
		binary.BigEndian.PutUint32(header[at:], value)
	}
	binary.BigEndian.PutUint64(header[512:], 1024)
	binary.BigEndian.PutUint64(header[1024:], 1536)
	f.Add(header)
	f.Add(bytes.Replace(header, []byte{0, 0, 0, 2}, []byte{0, 0, 0, 3}, 1))
	f.Fuzz(func(t *testing.T, raw []byte) {
		image, err := qcow2.Open(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		defer image.Close()
		// A sparse disk may be large.
		const most = 1 << 20
		whole, err := io.ReadAll(io.LimitReader(image, most))
		if int64(len(whole)) > image.Size() || err == nil && int64(len(whole)) != min(image.Size(), most) {
			t.Errorf("%d bytes were read of a disk of %d: %v", len(whole), image.Size(), err)
		}
		again, openErr := qcow2.Open(bytes.NewReader(raw), int64(len(raw)))
		if openErr != nil {
			t.Fatal(openErr)
		}
		defer again.Close()
		// In odd pieces, and without the few bytes at a time that would take a second.
		var pieces bytes.Buffer
		_, againErr := io.CopyBuffer(struct{ io.Writer }{&pieces}, io.LimitReader(again, most), make([]byte, 4099))
		if (err == nil) != (againErr == nil) || !bytes.Equal(pieces.Bytes(), whole) {
			t.Errorf("the second reading differs: %d bytes, %v, and before %d, %v", pieces.Len(), againErr, len(whole), err)
		}
	})
}
