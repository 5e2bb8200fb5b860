package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/test/require"
)

// bootDisk is a disk that begins with a boot record.
func bootDisk() []byte {
	out := bytes.Repeat([]byte("disk"), 1<<18)
	out[510], out[511] = 0x55, 0xaa
	return out
}

func writeTo(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConvertWritesTheDiskOfEachFormat(t *testing.T) {
	program := require.Tool(t, "qemu-img", "apt-get install qemu-utils")
	dir, disk := t.TempDir(), bootDisk()
	raw := writeTo(t, dir, "disk.raw", disk)
	var gz, xzipped bytes.Buffer
	g := gzip.NewWriter(&gz)
	x, err := xz.NewWriter(&xzipped)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []interface {
		Write([]byte) (int, error)
		Close() error
	}{g, x} {
		if _, err := w.Write(disk); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	qcow := filepath.Join(dir, "disk.qcow2")
	if out, err := exec.CommandContext(context.Background(), program, "convert", "-c", "-O", "qcow2", raw, qcow).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, input := range []string{raw, qcow, writeTo(t, dir, "a.gz", gz.Bytes()), writeTo(t, dir, "a.xz", xzipped.Bytes())} {
		output := filepath.Join(t.TempDir(), "out.raw.zst")
		status, stdout, stderr := ingot("image", "convert", input, "-o", output)
		packed, err := os.ReadFile(output)
		if status != cli.ExitOK || err != nil {
			t.Fatalf("%s: status %d, %v: %s", input, status, err, stderr)
		}
		if want := fmt.Sprintf("sha256:%x\n", sha256.Sum256(packed)); stdout != want {
			t.Errorf("%s: printed %q, the file has %q", input, stdout, want)
		}
		z, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := z.DecodeAll(packed, nil); err != nil || !bytes.Equal(got, disk) {
			t.Errorf("%s: the disk differs, error %v", input, err)
		}
	}
}

func TestConvertWritesTheDiskItselfForIronic(t *testing.T) {
	dir, disk := t.TempDir(), slices.Concat(bootDisk(), make([]byte, 1<<20))
	packed, output := filepath.Join(dir, "a.raw.zst"), filepath.Join(dir, "a.raw")
	if status, _, stderr := ingot("image", "convert", writeTo(t, dir, "disk", disk), "-o", packed); status != cli.ExitOK {
		t.Fatal(stderr)
	}
	status, stdout, stderr := ingot("image", "convert", packed, "-o", output)
	written, err := os.ReadFile(output)
	if status != cli.ExitOK || err != nil || !bytes.Equal(written, disk) {
		t.Fatalf("status %d, %v, %d bytes of %d: %s", status, err, len(written), len(disk), stderr)
	}
	if want := fmt.Sprintf("sha256:%x\n", sha256.Sum256(disk)); stdout != want {
		t.Errorf("printed %q, the file has %q", stdout, want)
	}
	info, err := os.Stat(output)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Blocks*512 >= info.Size() {
		t.Errorf("%d bytes take %d on the disk: the zeros are no hole", info.Size(), stat.Blocks*512)
	}
}

func TestConvertLeavesNothingOfWhatItRefuses(t *testing.T) {
	program := require.Tool(t, "qemu-img", "apt-get install qemu-utils")
	in := t.TempDir()
	raw := writeTo(t, in, "disk.raw", bootDisk())
	backed := filepath.Join(in, "backed.qcow2")
	if out, err := exec.CommandContext(context.Background(), program, "create", "-f", "qcow2", "-b", raw, "-F", "raw", backed).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	external := filepath.Join(in, "external.qcow2")
	if out, err := exec.CommandContext(context.Background(), program, "create", "-f", "qcow2", "-o", "data_file="+filepath.Join(in, "data"), external, "1M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cut := bootDisk()
	var gz bytes.Buffer
	g := gzip.NewWriter(&gz)
	if _, err := g.Write(cut); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]string{
		backed: "backing file", external: "another file", writeTo(t, in, "text", []byte(strings.Repeat("hello ", 1000))): "partition table",
		writeTo(t, in, "cut.gz", gz.Bytes()[:gz.Len()-20]): "EOF", filepath.Join(in, "none"): "no such file",
	} {
		for _, ending := range []string{".raw.zst", ".raw"} {
			out := t.TempDir()
			status, _, stderr := ingot("image", "convert", input, "-o", filepath.Join(out, "x"+ending))
			if status != cli.ExitFailed || !strings.Contains(stderr, want) {
				t.Errorf("%s: status %d: %s", input, status, stderr)
			}
			if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
				t.Errorf("%s left %v", input, left)
			}
		}
	}
}
