package bootcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/ingot-dev/ingot/imagebuilder/fat32"
)

// marker begins the lines of the report, and end is the last one.
const (
	marker = "IMAGE-CHECK "
	end    = marker + "end"
)

// userData has the report written to the serial console when cloud-init is done. A unit of its own waits, because a command of cloud-init would wait
// for itself.
const userData = `#cloud-config
write_files:
- path: /run/image-check
  permissions: "0755"
  content: |
    #!/bin/sh
    cloud-init status --wait --long | sed 's/^/` + marker + `status /' >/dev/ttyS0
    systemctl --failed --no-legend --plain | sed 's/^/` + marker + `failed /' >/dev/ttyS0
    df --block-size=1M --output=size / | sed -n '2s/^/` + marker + `size /p' >/dev/ttyS0
    echo ` + marker + `end >/dev/ttyS0
runcmd:
- [systemd-run, --no-block, sh, /run/image-check]
`

const metaData = "instance-id: image-check\nlocal-hostname: image-check\n"

// writeSeed writes the disk of a NoCloud seed, a FAT file system with the label CIDATA.
func writeSeed(name string) (err error) {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	root := &fat32.Node{Dir: true}
	for file, content := range map[string]string{"user-data": userData, "meta-data": metaData} {
		root.Entries = append(root.Entries, &fat32.Node{Name: file, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader([]byte(content))), nil
		}})
	}
	size := fat32.Size(root)
	if err := out.Truncate(size); err != nil {
		return err
	}
	return fat32.Write(out, size, root, fat32.Params{Label: "CIDATA", Time: time.Unix(0, 0)})
}

// machine is a virtual machine with the image as its disk.
type machine struct {
	disk, seed, vars string
	firmware         Firmware
	accelerated      bool
}

// boot runs the machine until the report is complete.
func (m machine) boot(ctx context.Context, console string, limit time.Duration) error {
	if err := m.copyVars(); err != nil {
		return err
	}
	out, err := os.Create(console)
	if err != nil {
		return err
	}
	defer out.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("cloud-init was not done after %s", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", m.arguments()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w := &watcher{to: out, found: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-w.found:
		cancel()
		<-ended
		return w.failure
	case err := <-ended:
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("QEMU ended before cloud-init was done: %w", endError(err))
	}
}

// endError replaces the error of a QEMU that ended by itself.
func endError(err error) error {
	if err == nil {
		return errors.New("the machine was switched off")
	}
	return err
}

// copyVars gives the machine variables of a firmware that was never booted.
func (m machine) copyVars() error {
	content, err := os.ReadFile(m.firmware.Vars)
	if err != nil {
		return err
	}
	return os.WriteFile(m.vars, content, 0o600)
}

// arguments are those of QEMU. The network has DHCP and leads nowhere.
func (m machine) arguments() []string {
	args := []string{"-machine", "q35,smm=on", "-m", "1536", "-smp", "2", "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-device", "virtio-rng-pci", "-netdev", "user,id=net0,restrict=on", "-device", "virtio-net-pci,netdev=net0,romfile=",
		"-drive", "if=pflash,format=raw,readonly=on,file=" + m.firmware.Code, "-drive", "if=pflash,format=raw,file=" + m.vars,
		// The disk stays as it was, for a second attempt.
		"-drive", "if=none,id=disk,format=raw,snapshot=on,file=" + m.disk, "-device", "virtio-blk-pci,drive=disk,bootindex=0",
		"-drive", "if=none,id=seed,format=raw,readonly=on,file=" + m.seed, "-device", "virtio-blk-pci,drive=seed"}
	if m.firmware.SecureBoot {
		// Only the firmware itself may change the variables.
		args = append(args, "-global", "driver=cfi.pflash01,property=secure,value=on", "-global", "ICH9-LPC.disable_s3=1")
	}
	return append(args, ProcessorArguments(m.accelerated)...)
}

// ProcessorArguments are QEMU's arguments for the processor of a machine, with or without the hardware's virtualisation.
func ProcessorArguments(accelerated bool) []string {
	if accelerated {
		return []string{"-accel", "kvm", "-cpu", "host"}
	}
	// cx16 was the cause of faults of newer kernels, and without a limit QEMU keeps 1.5 GiB of translated code.
	return []string{"-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,-cx16"}
}

// watcher copies the console and looks for the end of the report.
type watcher struct {
	to      io.Writer
	tail    []byte
	done    bool
	failure error // it is read after found is closed
	found   chan struct{}
}

// failures are what a console says when nothing more will come.
var failures = []string{"Kernel panic - not syncing", "You are in emergency mode", "(initramfs)", "grub rescue>"}

// tailLength is how much of the console is kept to find texts that come in parts.
const tailLength = 64

// Write implements io.Writer.
func (w *watcher) Write(b []byte) (int, error) {
	w.tail = append(w.tail, b...)
	for _, text := range append([]string{end}, failures...) {
		if w.done || !bytes.Contains(w.tail, []byte(text)) {
			continue
		}
		w.done = true
		if text != end {
			w.failure = fmt.Errorf("the boot ended with %q", text)
		}
		close(w.found)
	}
	w.tail = w.tail[max(0, len(w.tail)-tailLength):]
	return w.to.Write(b)
}
