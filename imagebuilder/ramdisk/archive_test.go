package ramdisk_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/imagebuilder/ramdisk"
	"github.com/klauspost/compress/zstd"
)

// treeOf returns a ramdisk's content with the program as init.
func treeOf(program string, size int64) ramdisk.Tree {
	return ramdisk.Tree{Init: strings.NewReader(program), InitSize: size,
		Files: map[string][]byte{"lib/modules/1/modules.dep": []byte("dep"), "etc/hosts": []byte("hosts")}, Links: map[string]string{"sbin/modprobe": "/init"}}
}

func write(t *testing.T, program string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := ramdisk.Write(&b, treeOf(program, int64(len(program)))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTheRamdiskHoldsInitAndTheConsole(t *testing.T) {
	z, err := zstd.NewReader(bytes.NewReader(write(t, "program!!")))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\x00program!!\x00\x00\x00070701", "dev/console\x00", "TRAILER!!!\x00"} {
		if !bytes.Contains(raw, []byte(want)) {
			t.Errorf("the archive has no %q", want)
		}
	}
	if len(raw)%4 != 0 {
		t.Errorf("%d bytes are no multiple of four", len(raw))
	}
	cpio, err := exec.LookPath("cpio")
	if err != nil {
		t.Log("cpio is not installed: the archive is not listed")
		return
	}
	list := exec.Command(cpio, "-tv")
	list.Stdin = bytes.NewReader(raw)
	out, err := list.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "5,   1") || !strings.Contains(string(out), "-rwxr-xr-x") ||
		!strings.Contains(string(out), "sbin/modprobe -> /init") || !strings.Contains(string(out), "lib/modules/1/modules.dep") {
		t.Errorf("cpio: %v\n%s", err, out)
	}
}

func TestTheSameProgramGivesTheSameRamdisk(t *testing.T) {
	program := strings.Repeat("an agent ", 1<<20)
	if !bytes.Equal(write(t, program), write(t, program)) {
		t.Error("two runs differ")
	}
}

func TestAProgramThatIsNotWhatItWasIsRefused(t *testing.T) {
	for _, content := range []string{"", "short", "too long by far"} {
		if err := ramdisk.Write(io.Discard, treeOf(content, 10)); err == nil {
			t.Errorf("%q passed for 10 bytes", content)
		}
	}
	if err := ramdisk.Write(io.Discard, treeOf("", 0)); err == nil {
		t.Error("an empty init passed")
	}
	full := filepath.Join(t.TempDir(), "closed")
	f, err := os.Create(full)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := ramdisk.Write(f, treeOf("x", 1)); err == nil {
		t.Error("a failed write is not reported")
	}
}
