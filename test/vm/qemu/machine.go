package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/imagebuilder/bootcheck"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/swtpm"
	"github.com/ingot-dev/ingot/test/vm/uefi"
)

// Disk is a disk of a machine.
type Disk struct {
	// Path is the file with its content, raw.
	Path string
	// Bus is nvme, virtio, sas or sata.
	Bus string
	// Serial is its serial number.
	Serial string
}

// Options describe a machine.
type Options struct {
	Name string
	// Dir is where the machine's variables, sockets and console log lie.
	Dir string
	// Firmware are the files of OVMF: the code, and the variables of a machine that was never booted.
	FirmwareCode, FirmwareVars string
	// SecureBoot says that the variables switch Secure Boot on.
	SecureBoot bool
	// MemoryMiB and CPUs are its size.
	MemoryMiB, CPUs int
	// UUID is its DMI UUID.
	UUID string
	// MAC is that of its network interface, and Tap the interface of the host that it is connected to.
	MAC, Tap string
	// NIC is the model of the network interface; empty: virtio-net-pci, the only one that OVMF has a driver for. The others boot by their option
	// ROM, which is iPXE.
	NIC   string
	Disks []Disk
	// Devices are further devices, as QEMU's -device has them.
	Devices []string
	// Pinned returns the URI that the machine boots by HTTP where NextBoot says BootPinned, and the authorities in PEM that its firmware trusts for HTTPS; nil: none.
	Pinned func() (uri, authorities string)
	// ARM64 gives the machine an arm64 processor, which is emulated; the firmware is AAVMF then.
	ARM64 bool
	// HTTPBoot makes the firmware boot from the network by HTTP instead of PXE.
	HTTPBoot bool
	// Accelerate uses the hardware's virtualisation.
	Accelerate bool
	// NextBoot returns what the machine boots when it starts.
	NextBoot func() hardware.BootSource
	// TPM returns the folder with the state of the machine's TPM 2.0; nil: it has none.
	TPM func() string
	// Media returns the file of the inserted medium; empty: none.
	Media func() string
	Log   *slog.Logger
}

// Machine is a virtual server. It is off until it is reset.
type Machine struct {
	options Options

	mu      sync.Mutex
	process *process
	boots   int
	closed  bool
}

// process is one run of QEMU.
type process struct {
	command *exec.Cmd
	monitor *monitor
	// tpm is that of this run; nil: none.
	tpm  *swtpm.TPM
	done chan struct{}
}

// New returns a machine that is off.
func New(options Options) (*Machine, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.NIC == "" {
		options.NIC = "virtio-net-pci"
	}
	m := &Machine{options: options}
	if err := copyFile(options.FirmwareVars, m.path("vars.fd")); err != nil {
		return nil, fmt.Errorf("the firmware's variables: %w", err)
	}
	return m, nil
}

func (m *Machine) path(name string) string {
	return filepath.Join(m.options.Dir, m.options.Name+"-"+name)
}

// Console is the path of the log of its serial console, of all boots.
func (m *Machine) Console() string { return m.path("console.log") }

// Boots returns how often the machine was started or has reset itself.
func (m *Machine) Boots() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boots
}

// Power implements bmc.Machine.
func (m *Machine) Power() hardware.PowerState {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		return hardware.PowerOff
	}
	return hardware.PowerOn
}

// Reset implements bmc.Machine.
func (m *Machine) Reset(kind bmc.Reset) {
	m.options.Log.Info("reset", "machine", m.options.Name, "kind", kind)
	switch kind {
	case bmc.ResetOn, bmc.ResetForceOn:
		m.start()
	case bmc.ResetForceOff, bmc.ResetPushPowerButton:
		m.PullPlug()
	case bmc.ResetGracefulShutdown:
		m.press()
	default:
		m.PullPlug()
		m.start()
	}
}

// start starts QEMU if it does not run.
func (m *Machine) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil || m.closed {
		return
	}
	p, err := m.run(m.options.NextBoot())
	if err != nil {
		m.options.Log.Error("the machine does not start", "machine", m.options.Name, "error", err)
		return
	}
	m.process = p
	m.boots++
	go m.follow(p)
}

// follow waits for the end of the run. A reset by the guest ends QEMU too (-action reboot=shutdown), so that the next run boots from what the BMC
// says then, as a server does.
func (m *Machine) follow(p *process) {
	isReset := p.monitor.isEndedByReset()
	err := p.command.Wait()
	if p.tpm != nil {
		p.tpm.Stop()
	}
	m.mu.Lock()
	m.process = nil
	m.mu.Unlock()
	close(p.done)
	m.options.Log.Info("the machine stopped", "machine", m.options.Name, "reset", isReset, "error", err)
	if isReset {
		m.start()
	}
}

// PullPlug takes the power away and returns when the machine is off.
func (m *Machine) PullPlug() {
	m.mu.Lock()
	p := m.process
	m.mu.Unlock()
	if p == nil {
		return
	}
	// It fails only when the process has ended.
	_ = p.command.Process.Kill()
	<-p.done
}

// press presses the power button, which an operating system answers by a shutdown.
func (m *Machine) press() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil {
		if err := m.process.monitor.execute("system_powerdown"); err != nil {
			m.options.Log.Warn("the power button", "machine", m.options.Name, "error", err)
		}
	}
}

// Close takes the power away for good.
func (m *Machine) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.PullPlug()
}

// run starts QEMU.
func (m *Machine) run(boot hardware.BootSource) (*process, error) {
	socket := m.path("qmp.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	console, err := os.OpenFile(m.Console(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer console.Close()
	fmt.Fprintf(console, "\n=== %s starts and boots from %s\n", m.options.Name, boot)
	if err := m.pin(boot); err != nil {
		return nil, err
	}
	program := "qemu-system-x86_64"
	if m.options.ARM64 {
		program = "qemu-system-aarch64"
	}
	arguments := m.arguments(socket, boot)
	p := &process{done: make(chan struct{})}
	if m.options.TPM != nil {
		if p.tpm, err = swtpm.Drive(m.options.TPM()); err != nil {
			return nil, err
		}
		arguments = append(arguments, "-chardev", "socket,id=tpm,path="+p.tpm.Socket, "-tpmdev", "emulator,id=tpm0,chardev=tpm", "-device", "tpm-crb,tpmdev=tpm0")
	}
	if err := p.begin(program, arguments, socket, console); err != nil {
		if p.tpm != nil {
			p.tpm.Stop()
		}
		return nil, err
	}
	return p, nil
}

// begin starts the program and connects to its monitor.
func (p *process) begin(program string, arguments []string, socket string, console *os.File) error {
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = console, console
	// The machine ends with the test, also when the test is killed.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return err
	}
	mon, err := openMonitor(context.Background(), socket)
	if err != nil {
		return errors.Join(err, command.Process.Kill(), command.Wait())
	}
	p.command, p.monitor = command, mon
	return nil
}

// pin writes the URI that the firmware boots next into its variables, or removes an earlier one, and the authorities that it trusts into a file. The firmware
// deletes BootNext itself.
func (m *Machine) pin(boot hardware.BootSource) error {
	if m.options.Pinned == nil {
		return nil
	}
	uri, authorities := m.options.Pinned()
	if boot != hardware.BootPinned {
		uri = ""
	}
	return errors.Join(uefi.WriteBootNext(m.path("vars.fd"), uri), os.WriteFile(m.path("authorities"), uefi.SignatureLists(authorities), 0o600))
}

// arguments are those of QEMU.
func (m *Machine) arguments(socket string, boot hardware.BootSource) []string {
	o := m.options
	board := "q35,smm=on"
	if o.ARM64 {
		board = "virt"
	}
	args := []string{"-name", o.Name, "-machine", board, "-m", strconv.Itoa(o.MemoryMiB), "-smp", strconv.Itoa(max(o.CPUs, 1)), "-uuid", o.UUID,
		"-nodefaults", "-display", "none", "-serial", "stdio", "-action", "reboot=shutdown", "-qmp", "unix:" + socket + ",server=on,wait=off",
		"-device", "virtio-rng-pci",
		"-drive", "if=pflash,format=raw,readonly=on,file=" + o.FirmwareCode, "-drive", "if=pflash,format=raw,file=" + m.path("vars.fd")}
	if o.ARM64 {
		args = append(args, "-cpu", "cortex-a72", "-accel", "tcg,thread=multi")
	} else {
		args = append(args, bootcheck.ProcessorArguments(o.Accelerate)...)
	}
	if o.SecureBoot {
		// Only the firmware itself may change the variables.
		args = append(args, "-global", "driver=cfi.pflash01,property=secure,value=on", "-global", "ICH9-LPC.disable_s3=1")
	}
	first := func(source hardware.BootSource, otherwise int) string {
		if source == boot {
			return "0"
		}
		return strconv.Itoa(otherwise)
	}
	rom := ""
	if o.NIC == "virtio-net-pci" {
		rom = ",romfile="
	}
	args = append(args, "-netdev", "tap,id=net0,ifname="+o.Tap+",script=no,downscript=no",
		"-device", o.NIC+",netdev=net0,mac="+o.MAC+rom+",bootindex="+first(hardware.BootNetwork, 8))
	if o.Pinned != nil {
		args = append(args, "-fw_cfg", "name=etc/edk2/https/cacerts,file="+m.path("authorities"))
	}
	if o.HTTPBoot {
		args = append(args, "-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=no", "-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=no")
	}
	for i, disk := range o.Disks {
		args = append(args, diskArguments(i, disk, first(hardware.BootDisk, 4+i))...)
	}
	for _, device := range o.Devices {
		args = append(args, "-device", device)
	}
	if o.Media != nil {
		if medium := o.Media(); medium != "" {
			args = append(args, "-drive", "if=none,id=medium,media=cdrom,readonly=on,file="+medium, "-device", "qemu-xhci,id=usb",
				"-device", "usb-storage,drive=medium,removable=on,bootindex="+first(hardware.BootMedia, 7))
		}
	}
	return args
}

// diskArguments are the drive and the device of a disk.
func diskArguments(i int, disk Disk, bootIndex string) []string {
	id := "disk" + strconv.Itoa(i)
	out := []string{"-drive", "if=none,format=raw,cache=unsafe,discard=unmap,id=" + id + ",file=" + disk.Path}
	rest := ",drive=" + id + ",serial=" + disk.Serial + ",bootindex=" + bootIndex
	switch disk.Bus {
	case "nvme":
		return append(out, "-device", "nvme"+rest)
	case "sas":
		return append(out, "-device", "megasas,id=hba"+id, "-device", "scsi-hd,bus=hba"+id+".0"+rest)
	case "sata":
		return append(out, "-device", "ide-hd"+rest)
	}
	return append(out, "-device", "virtio-blk-pci"+rest)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
