package rack_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/diskfs/go-diskfs"
	"github.com/diskfs/go-diskfs/disk"
	"github.com/diskfs/go-diskfs/filesystem"
	"github.com/diskfs/go-diskfs/partition/gpt"
	"github.com/klauspost/compress/zstd"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/rack"
)

// speed makes a self-test of four minutes take a quarter of a second.
const speed = 1000

const manifest = `{
  "os": {"id": "debian", "version": "13", "kernel": "6.12.107"},
  "kernel": "6.12.107", "kernelArguments": ["modprobe.blacklist=nouveau"],
  "software": {
    "gpuDriver": {"vendor": "nvidia", "version": "580.126.09", "kernelModule": "Open"},
    "containerd": "2.2.0", "kubelet": "1.37.0", "containerToolkit": "1.18.0"
  }
}`

// testImage is a packed disk image with the manifest, made once.
var testImage = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "rack-image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "image.raw")
	image, err := diskfs.Create(path, 80<<20, diskfs.SectorSize512)
	if err != nil {
		return nil, err
	}
	table := &gpt.Table{LogicalSectorSize: 512, PhysicalSectorSize: 512, ProtectiveMBR: true, Partitions: []*gpt.Partition{
		{Index: 1, Start: 2048, End: 4095, Type: gpt.EFISystemPartition, Name: "ESP"},
		{Index: 2, Start: 4096, End: 4096 + 64<<11 - 1, Type: gpt.LinuxFilesystem, Name: "root"},
	}}
	if err := image.Partition(table); err != nil {
		return nil, err
	}
	root, err := image.CreateFilesystem(disk.FilesystemSpec{Partition: 2, FSType: filesystem.TypeExt4, VolumeLabel: "root"})
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{"usr", "usr/bin", "usr/lib", "usr/lib/ingot"} {
		if err := root.Mkdir(dir); err != nil {
			return nil, err
		}
	}
	for path, content := range map[string]string{"usr/lib/ingot/image.json": manifest, "usr/bin/nvidia-mig-parted": "simulated"} {
		file, err := root.OpenFile(path, os.O_CREATE|os.O_RDWR)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write([]byte(content)); err != nil {
			return nil, err
		}
	}
	if err := image.Close(); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	return encoder.EncodeAll(raw, nil), nil
})

// cpio is an archive of the "new" format with one file.
func cpio(name, content string) []byte {
	var out bytes.Buffer
	entry := func(name, content string, mode int) {
		fmt.Fprintf(&out, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00", 1, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0, name)
		for out.Len()%4 != 0 {
			out.WriteByte(0)
		}
		out.WriteString(content)
		for out.Len()%4 != 0 {
			out.WriteByte(0)
		}
	}
	entry(name, content, 0o100755)
	entry("TRAILER!!!", "", 0)
	return out.Bytes()
}

// store is a netboot.Store of one process.
type store struct {
	mu       sync.Mutex
	sessions map[string]netboot.Session
	drives   map[string]hardware.ConfigDrive
}

func (s *store) find(match func(netboot.Session) bool) (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		if match(session) {
			return session, nil
		}
	}
	return netboot.Session{}, hardware.Errorf(hardware.NotFound, "find host", "store", "no such host")
}

func (s *store) ByMAC(_ context.Context, mac string) (netboot.Session, error) {
	return s.find(func(session netboot.Session) bool { return session.BootMAC == mac })
}

func (s *store) CachedByMAC(ctx context.Context, mac string) (netboot.Session, error) {
	return s.ByMAC(ctx, mac)
}

func (s *store) CachedByUID(ctx context.Context, uid string) (netboot.Session, error) {
	return s.ByUID(ctx, uid)
}

func (s *store) ByUID(_ context.Context, uid string) (netboot.Session, error) {
	return s.find(func(session netboot.Session) bool { return session.HostUID == uid })
}

func (s *store) Update(_ context.Context, uid string, change func(*netboot.Session) error) (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, known := s.sessions[uid]
	if !known {
		return session, hardware.Errorf(hardware.NotFound, "update host", "store", "no such host")
	}
	if err := change(&session); err != nil {
		return s.sessions[uid], err
	}
	s.sessions[uid] = session
	return session, nil
}

func (s *store) ConfigDrive(_ context.Context, uid string, attempt int64) (hardware.ConfigDrive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[uid].Number != attempt {
		return hardware.ConfigDrive{}, hardware.Errorf(hardware.Conflict, "read config drive", "store", "another attempt")
	}
	return s.drives[uid], nil
}

// rig is a rack with the real boot service, the real Redfish client and the real installer around it.
type rig struct {
	t         testing.TB
	rack      *rack.Rack
	store     *store
	client    *redfish.Client
	installer *direct.Installer
	image     hardware.Image
	attempt   int64
	// bootURL is the address of the boot service in boot documents; empty: where it is.
	bootURL string
}

// newRig starts a rack; change, where given, changes its options before.
func newRig(t testing.TB, servers int, change func(*rack.Options)) *rig {
	t.Helper()
	packed, err := testImage()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: &store{sessions: map[string]netboot.Session{}, drives: map[string]hardware.ConfigDrive{}}}
	images := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(packed))
	}))
	t.Cleanup(images.Close)
	sum := sha256.Sum256(packed)
	r.image = hardware.Image{URL: images.URL + "/image.raw.zst", Checksum: "sha256:" + hex.EncodeToString(sum[:]), Format: "raw.zst"}
	options := rack.Options{Dir: t.TempDir(), Count: servers, BootURL: r.startBootService(), Speed: speed}
	if testing.Verbose() {
		options.Log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	}
	if change != nil {
		change(&options)
	}
	if r.rack, err = rack.New(options); err != nil {
		t.Fatal(err)
	}
	if err := r.rack.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.client = redfish.New(redfish.Options{Timeout: 2 * time.Second})
	t.Cleanup(func() {
		if err := r.client.Close(context.Background()); err != nil {
			t.Log(err)
		}
		if err := r.rack.Stop(); err != nil {
			t.Error(err)
		}
	})
	r.installer = direct.New(direct.Options{
		BMCs: r.client, Store: r.store, Timeouts: hardware.Timeouts{PowerOn: 2 * time.Second, PowerOnRetry: 300 * time.Millisecond, Boot: 3 * time.Second},
	})
	for _, server := range r.rack.Servers() {
		r.store.sessions[server.UUID()] = netboot.Session{HostUID: server.UUID(), Namespace: "metal", Name: server.Name(), BootMAC: server.BootMAC()}
	}
	return r
}

func (r *rig) startBootService() string {
	var handler http.Handler
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { handler.ServeHTTP(w, q) }))
	r.t.Cleanup(service.Close)
	var err error
	handler, err = netboot.New(netboot.Options{
		Store: r.store, Key: func(context.Context) ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil }, BaseURL: service.URL,
		HostSettings: func(context.Context, netboot.Session) (netboot.HostSettings, error) {
			return netboot.HostSettings{URL: r.bootURL}, nil
		},
		Files:  fstest.MapFS{"vmlinuz": {Data: []byte("kernel")}, "initrd": {Data: cpio("init", "the agent")}},
		Kernel: "vmlinuz", Initrd: "initrd", ProgressInterval: 20 * time.Millisecond,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return service.URL
}

func (r *rig) endpoint(s *rack.Server) hardware.Endpoint {
	username, password := s.Credentials()
	return hardware.Endpoint{Address: s.BMCAddress(), SystemPath: s.SystemPath(), Username: username, Password: password, CABundle: r.rack.CA()}
}

func (r *rig) bmc(s *rack.Server) hardware.BMC {
	r.t.Helper()
	bmc, err := r.client.OpenBMC(r.t.Context(), r.endpoint(s))
	if err != nil {
		r.t.Fatal(err)
	}
	return bmc
}

func (r *rig) host(s *rack.Server) hardware.Host {
	return hardware.Host{UID: s.UUID(), Namespace: "metal", Name: s.Name(), BootMAC: s.BootMAC(), BMC: r.endpoint(s)}
}

// work drives one attempt until it is settled.
func (r *rig) work(s *rack.Server, step func(hardware.Attempt) error) hardware.AttemptStatus {
	r.t.Helper()
	r.attempt++
	attempt := hardware.Attempt{Number: r.attempt, Deadline: time.Now().Add(2 * time.Minute)}
	var status hardware.AttemptStatus
	eventually(r.t, "the attempt is settled", func() error {
		if err := step(attempt); err != nil && hardware.KindOf(err) != hardware.Busy && hardware.KindOf(err) != hardware.Unreachable {
			r.t.Fatal(err)
		}
		observed, err := r.installer.Observe(r.t.Context(), r.host(s))
		if err != nil && hardware.KindOf(err) != hardware.Busy && hardware.KindOf(err) != hardware.Unreachable {
			r.t.Fatal(err)
		}
		if observed.Attempt == nil || observed.Attempt.Number != attempt.Number || observed.Attempt.State == hardware.AttemptRunning {
			return fmt.Errorf("attempt %+v, server %+v", observed.Attempt, s.State())
		}
		status = *observed.Attempt
		return nil
	})
	return status
}

func (r *rig) install(s *rack.Server, drive hardware.ConfigDrive) hardware.AttemptStatus {
	r.t.Helper()
	r.store.mu.Lock()
	r.store.drives[s.UUID()] = drive
	r.store.mu.Unlock()
	return r.work(s, func(attempt hardware.Attempt) error {
		return r.installer.Install(r.t.Context(), r.host(s), attempt, hardware.InstallSpec{Image: r.image})
	})
}

// begin drives a new attempt only until the server's power is on.
func (r *rig) begin(s *rack.Server, drive hardware.ConfigDrive) {
	r.t.Helper()
	r.store.mu.Lock()
	r.store.drives[s.UUID()] = drive
	r.store.mu.Unlock()
	r.attempt++
	attempt := hardware.Attempt{Number: r.attempt, Deadline: time.Now().Add(2 * time.Minute)}
	eventually(r.t, "the server is powered on for the attempt", func() error {
		if err := r.installer.Install(r.t.Context(), r.host(s), attempt, hardware.InstallSpec{Image: r.image}); err != nil {
			return err
		}
		session, err := r.store.ByUID(r.t.Context(), s.UUID())
		if err == nil && session.OpenedAt.IsZero() {
			err = errors.New("not opened yet")
		}
		return err
	})
}

func (r *rig) erase(s *rack.Server, mode hardware.EraseMode) hardware.AttemptStatus {
	r.t.Helper()
	return r.work(s, func(attempt hardware.Attempt) error {
		return r.installer.Erase(r.t.Context(), r.host(s), attempt, mode)
	})
}

// eventually repeats the check until it holds; each failure says how things stand.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	eventuallyEvery(t, 10*time.Millisecond, what, check)
}

func eventuallyEvery(t testing.TB, pause time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s: %v", what, err)
		}
		time.Sleep(pause)
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(text []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimSpace(text))
	return len(text), nil
}

func drive(uuid, userData string) hardware.ConfigDrive {
	return hardware.ConfigDrive{UserData: []byte(userData), MetaData: fmt.Appendf(nil, `{"uuid": %q, "hostname": "node-1"}`, uuid)}
}
