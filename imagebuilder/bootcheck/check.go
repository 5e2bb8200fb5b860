package bootcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	// growth is added to the disk, so that the root file system has to grow as on a server.
	growth = 512 << 20
	// kvmLimit is how long an attempt with hardware virtualisation may take. It needs less than one minute where it works.
	kvmLimit = 3 * time.Minute
)

// Options configure Check.
type Options struct {
	// Image is the image file, raw.zst.
	Image string
	// Console is the file for the output of the serial console.
	Console string
	// Firmware are the files of OVMF.
	Firmware Firmware
	// Limit is how long the boot may take.
	Limit time.Duration
	// Progress gets a line for each attempt.
	Progress io.Writer
}

// Firmware are the files of OVMF: the code, and the variables of a machine that was never booted.
type Firmware struct {
	Code, Vars string
	// SecureBoot says that the variables switch Secure Boot on.
	SecureBoot bool
}

// firmwareFiles are where distributions keep OVMF.
var firmwareFiles = []Firmware{
	{Code: "/usr/share/OVMF/OVMF_CODE_4M.fd", Vars: "/usr/share/OVMF/OVMF_VARS_4M.fd"},
	{Code: "/usr/share/OVMF/OVMF_CODE.fd", Vars: "/usr/share/OVMF/OVMF_VARS.fd"},
	{Code: "/usr/share/edk2/ovmf/OVMF_CODE.fd", Vars: "/usr/share/edk2/ovmf/OVMF_VARS.fd"},
}

// SecureFirmware is Debian's firmware with Secure Boot on and Microsoft's keys, as servers are delivered.
var SecureFirmware = Firmware{Code: "/usr/share/OVMF/OVMF_CODE_4M.ms.fd", Vars: "/usr/share/OVMF/OVMF_VARS_4M.ms.fd", SecureBoot: true}

// FindFirmware returns the firmware of this machine.
func FindFirmware() (Firmware, error) {
	for _, f := range firmwareFiles {
		if _, err := os.Stat(f.Code); err == nil {
			return f, nil
		}
	}
	return Firmware{}, errors.New("missing the firmware OVMF: apt-get install ovmf")
}

// Check boots the image. The error says what did not work, and that the console has more.
func Check(ctx context.Context, opts Options) (err error) {
	work, err := os.MkdirTemp(filepath.Dir(opts.Console), ".check-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	m := machine{disk: filepath.Join(work, "disk.raw"), seed: filepath.Join(work, "seed.img"), vars: filepath.Join(work, "vars.fd"), firmware: opts.Firmware}
	size, err := unpack(opts.Image, m.disk)
	if err != nil {
		return err
	}
	if err := writeSeed(m.seed); err != nil {
		return err
	}
	if isUsable("/dev/kvm") {
		m.accelerated = true
		fmt.Fprintln(opts.Progress, "      with hardware virtualisation")
		if m.boot(ctx, opts.Console, min(kvmLimit, opts.Limit)) == nil {
			return judge(opts.Console, size)
		}
		m.accelerated = false
	}
	fmt.Fprintf(opts.Progress, "      without hardware virtualisation, which takes minutes; the console is %s\n", opts.Console)
	if err := m.boot(ctx, opts.Console, opts.Limit); err != nil {
		return fmt.Errorf("%w; the console is in %s", err, opts.Console)
	}
	return judge(opts.Console, size)
}

// isUsable reports whether the device can be opened.
func isUsable(device string) bool {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	return err == nil && f.Close() == nil
}

// unpack writes the disk with room to grow. It returns the size of the disk in the image.
func unpack(image, disk string) (size int64, err error) {
	in, err := os.Open(image)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	z, err := zstd.NewReader(in)
	if err != nil {
		return 0, err
	}
	defer z.Close()
	out, err := os.Create(disk)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if size, err = copySparse(out, z); err != nil {
		return 0, fmt.Errorf("%s: %w", image, err)
	}
	return size, out.Truncate(size + growth)
}

// copySparse copies without writing blocks of zeros.
func copySparse(out io.WriterAt, in io.Reader) (int64, error) {
	block, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); ; {
		n, err := io.ReadFull(in, block)
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := out.WriteAt(block[:n], at); err != nil {
				return at, err
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return at, nil
		}
		if err != nil {
			return at, err
		}
	}
}

// judge reads what the script of the seed has written to the console.
func judge(console string, size int64) error {
	content, err := os.ReadFile(console)
	if err != nil {
		return err
	}
	lines := reportLines(string(content))
	var problems []string
	if !hasLine(lines["status"], "status: done") {
		problems = append(problems, "cloud-init: "+strings.Join(lines["status"], ", "))
	}
	for _, unit := range lines["failed"] {
		problems = append(problems, "a unit failed: "+unit)
	}
	var mib int64
	if len(lines["size"]) > 0 {
		// A line that is no number counts as a size of 0.
		_, _ = fmt.Sscan(lines["size"][0], &mib)
	}
	if mib<<20 < size {
		problems = append(problems, fmt.Sprintf("the root file system has %d MiB on a disk of %d MiB: it did not grow (package cloud-initramfs-growroot)", mib, (size+growth)>>20))
	}
	if len(problems) > 0 {
		return fmt.Errorf("the image boots, but: %s; the console is in %s", strings.Join(problems, "; "), console)
	}
	return nil
}

// reportLines returns the lines of the script's report by their kind.
func reportLines(console string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(console) {
		_, text, found := strings.Cut(line, marker)
		if kind, value, ok := strings.Cut(strings.TrimSpace(text), " "); found && ok {
			out[kind] = append(out[kind], strings.TrimSpace(value))
		}
	}
	return out
}

func hasLine(lines []string, line string) bool {
	for _, l := range lines {
		if l == line {
			return true
		}
	}
	return false
}
