package vm_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/iana"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/dhcp"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/routers"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/tftp"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/vm/lab"
	"github.com/ingot-dev/ingot/test/vm/qemu"
)

func TestMain(m *testing.M) { lab.Main(m) }

const bootMAC = "52:54:00:aa:00:01"

func TestAServerBootsTheAgentOverPXEAndIsInstalled(t *testing.T) {
	if !lab.IsInside() {
		t.Skip("root")
	}
	boot := os.Getenv("INGOT_VM_BOOT")
	if boot == "" {
		t.Skip("INGOT_VM_BOOT names no directory made by ingot image ramdisk")
	}
	if err := lab.MakeBridge(); err != nil {
		t.Fatal(err)
	}
	if err := lab.AddTap("tap0"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	base := "http://" + lab.Address + ":8090"

	// An image.
	image := make([]byte, 8<<20)
	if _, err := rand.Read(image); err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(image)
	files := filepath.Join(dir, "images")
	if err := os.Mkdir(files, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "image.raw"), image, 0o644); err != nil {
		t.Fatal(err)
	}
	diskPath := filepath.Join(dir, "disk.raw")
	if err := os.WriteFile(diskPath, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(diskPath, 5<<30); err != nil {
		t.Fatal(err)
	}

	store := &store{session: netboot.Session{HostUID: "uid-1", BootMAC: bootMAC}}
	service, err := netboot.New(netboot.Options{
		Store: store, Key: func(context.Context) ([]byte, error) { return bytes.Repeat([]byte("k"), 32), nil },
		BaseURL: base, Files: os.DirFS(boot), Kernel: "vmlinuz", Initrd: "agent.cpio.zst", KernelArguments: []string{"console=ttyS0"}, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", service)
	mux.Handle("/images/", http.StripPrefix("/images/", http.FileServer(http.Dir(files))))
	mux.Handle("/ipxe/", http.StripPrefix("/ipxe/", http.FileServer(http.Dir("/usr/lib/ipxe"))))
	listener, err := net.Listen("tcp", lab.Address+":8090")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux}
	go server.Serve(listener)
	defer server.Close()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conn, err := net.ListenPacket("udp4", lab.Address+":69")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := tftp.Serve(ctx, conn, os.DirFS("/usr/lib/ipxe"), log); err != nil {
			t.Error(err)
		}
	}()
	go func() {
		err := dhcp.Serve(ctx, dhcp.Options{
			Network: dhcp.Network{
				Server: netip.MustParseAddr(lab.Address), BootURL: base,
				Programs: map[iana.Arch]dhcp.Program{
					iana.EFI_X86_64: {File: "snponly.efi"}, iana.EFI_BC: {File: "snponly.efi"}, iana.EFI_X86_64_HTTP: {URL: base + "/ipxe/snponly.efi"},
				},
				Lease: &dhcp.LeaseSettings{Prefix: netip.MustParsePrefix(lab.Prefix), Time: time.Hour},
			},
			Interface: lab.Bridge, Log: log,
			Find: func(_ context.Context, mac string, _ netip.Addr) (dhcp.Host, bool, error) {
				return dhcp.Host{Address: netip.MustParseAddr("10.77.0.50")}, mac == bootMAC, nil
			},
		})
		if err != nil {
			t.Error(err)
		}
	}()

	go func() {
		time.Sleep(3 * time.Second) // link-local address
		if err := routers.Serve(ctx, lab.Bridge, func(mac string) bool { return mac == bootMAC }, log); err != nil {
			t.Error(err)
		}
	}()

	var controller *bmc.BMC
	machine, err := qemu.New(qemu.Options{
		Name: "server", Dir: dir, FirmwareCode: "/usr/share/OVMF/OVMF_CODE_4M.fd", FirmwareVars: "/usr/share/OVMF/OVMF_VARS_4M.fd", MemoryMiB: 1024, CPUs: 1,
		UUID: "03020100-0504-0706-0809-0a0b0c0d0e0f", MAC: bootMAC, Tap: "tap0", Disks: []qemu.Disk{{Path: diskPath, Bus: "nvme", Serial: "DRIVE0"}},
		NextBoot: func() hardware.BootSource { return controller.TakeBoot() }, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	defer func() {
		if console, err := os.ReadFile(machine.Console()); err == nil && t.Failed() {
			t.Logf("%s", console)
		}
	}()
	authority, err := bmc.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	controller = bmc.New(bmc.Options{Name: "server", Machine: machine, Hardware: hardware.Inventory{SystemUUID: "03020100-0504-0706-0809-0a0b0c0d0e0f",
		NICs: []hardware.NIC{{MAC: bootMAC}}}, Authority: authority, Username: "u", Password: "p", Log: log})
	if err := controller.Start(ctx); err != nil {
		t.Fatal(err)
	}
	client := redfish.New(redfish.Options{Clock: time.Now})
	defer client.Close(context.Background())
	installer := direct.New(direct.Options{BMCs: client, Store: store, Clock: time.Now})
	host := hardware.Host{UID: "uid-1", Namespace: "rack-1", Name: "gpu-1", BootMAC: bootMAC, BMC: controller.Endpoint()}
	begin := time.Now()
	last := hardware.Step("")
	for deadline := begin.Add(5 * time.Minute); ; {
		if time.Now().After(deadline) {
			t.Fatal("not installed in time")
		}
		err := installer.Install(ctx, host, hardware.Attempt{Number: 1, Deadline: begin.Add(10 * time.Minute)},
			hardware.InstallSpec{Image: hardware.Image{URL: base + "/images/image.raw", Checksum: "sha256:" + hex.EncodeToString(digest[:]), Format: "raw"}})
		if err != nil {
			t.Logf("install: %v", err)
		}
		o, err := installer.Observe(ctx, host)
		if err != nil || o.Attempt == nil {
			t.Logf("observe: %v", err)
			continue
		}
		if o.Attempt.Step != last {
			last = o.Attempt.Step
			t.Logf("%5.1fs %s %s", time.Since(begin).Seconds(), last, o.Attempt.State)
		}
		if o.Attempt.State == hardware.AttemptFailed {
			t.Fatalf("%+v", o.Attempt)
		}
		if o.Attempt.State == hardware.AttemptSucceeded {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	disk, err := os.Open(diskPath)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	written := make([]byte, len(image))
	if _, err := disk.ReadAt(written, 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written, image) {
		t.Error("the disk has other bytes than the image")
	}
}
