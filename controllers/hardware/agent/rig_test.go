package agent_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
)

const (
	hostUID = "0b0c1fd6-1f0f-4f5e-9f0c-0d6f5f2f1a11"
	bootMAC = "0c:42:a1:00:00:01"
	mib     = 1 << 20
)

// memoryStore is a netboot.Store of one process.
type memoryStore struct {
	mu       sync.Mutex
	sessions map[string]netboot.Session
	drives   map[string]hardware.ConfigDrive
	updates  int
	// unwritten is how often the config drive is asked for before it is written; asked is how often it was.
	unwritten, asked int
}

func (s *memoryStore) find(match func(netboot.Session) bool) (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		if match(session) {
			return session, nil
		}
	}
	return netboot.Session{}, hardware.Errorf(hardware.NotFound, "find host", "store", "no such host")
}

func (s *memoryStore) ByMAC(_ context.Context, mac string) (netboot.Session, error) {
	return s.find(func(session netboot.Session) bool { return session.BootMAC == mac })
}

func (s *memoryStore) CachedByMAC(ctx context.Context, mac string) (netboot.Session, error) {
	return s.ByMAC(ctx, mac)
}

func (s *memoryStore) CachedByUID(ctx context.Context, uid string) (netboot.Session, error) {
	return s.ByUID(ctx, uid)
}

func (s *memoryStore) ByUID(_ context.Context, uid string) (netboot.Session, error) {
	return s.find(func(session netboot.Session) bool { return session.HostUID == uid })
}

func (s *memoryStore) Update(_ context.Context, uid string, change func(*netboot.Session) error) (netboot.Session, error) {
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
	s.updates++
	return session, nil
}

func (s *memoryStore) ConfigDrive(_ context.Context, uid string, attempt int64) (hardware.ConfigDrive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[uid].Number != attempt {
		return hardware.ConfigDrive{}, hardware.Errorf(hardware.Conflict, "read config drive", "store", "another attempt")
	}
	if s.asked++; s.asked <= s.unwritten {
		return hardware.ConfigDrive{}, hardware.Errorf(hardware.Busy, "read config drive", "store", "not written yet")
	}
	return s.drives[uid], nil
}

// rig is a boot service and an image server on loopback with one host.
type rig struct {
	// settings are those of the host.
	settings netboot.HostSettings
	// handler is the boot service, and pins are of its HTTPS.
	handler http.Handler
	pins    []string
	t       testing.TB
	store   *memoryStore
	service *httptest.Server
	images  *httptest.Server
	served  []byte
	log     *bytes.Buffer
	logs    *agentlogs.Keeper
	saved   savedLogs
}

// newRig serves the file as the image of a running installation.
func newRig(t testing.TB, served []byte, format string, drive hardware.ConfigDrive) *rig {
	t.Helper()
	r := &rig{t: t, served: served, log: &bytes.Buffer{}}
	r.images = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(r.served))
	}))
	t.Cleanup(r.images.Close)
	now := time.Now()
	r.store = &memoryStore{
		sessions: map[string]netboot.Session{hostUID: {
			HostUID: hostUID, Namespace: "metal", Name: "gpu-1", BootMAC: bootMAC,
			Work:          netboot.Work{Operation: hardware.OpInstall, Image: hardware.Image{URL: r.images.URL + "/image", Checksum: sha256Of(served), Format: format}},
			AttemptStatus: hardware.AttemptStatus{Number: 7, State: hardware.AttemptRunning, Step: hardware.StepBooting},
			Since:         now.Add(-time.Minute), OpenedAt: now.Add(-time.Second), Deadline: now.Add(time.Hour),
		}},
		drives: map[string]hardware.ConfigDrive{hostUID: drive},
	}
	var service http.Handler
	r.service = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { service.ServeHTTP(w, q) }))
	t.Cleanup(r.service.Close)
	r.logs = agentlogs.New(&r.saved, nil, nil)
	made, err := netboot.New(netboot.Options{
		Logs:  r.logs,
		Store: r.store, Key: func(context.Context) ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil },
		BaseURL: r.service.URL, HostSettings: func(context.Context, netboot.Session) (netboot.HostSettings, error) { return r.settings, nil }, Files: fstest.MapFS{"vmlinuz": {Data: []byte("kernel")}, "initrd": {Data: []byte("initrd")}},
		Pins: func(context.Context) ([]string, error) { return r.pins, nil }, Kernel: "vmlinuz", Initrd: "initrd", KernelArguments: []string{"console=ttyS0"}, ProgressInterval: 20 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	service, r.handler = made, made
	return r
}

// change edits the host's session.
func (r *rig) change(edit func(*netboot.Session)) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	session := r.store.sessions[hostUID]
	edit(&session)
	r.store.sessions[hostUID] = session
}

func (r *rig) session() netboot.Session {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return r.store.sessions[hostUID]
}

var tokenPattern = regexp.MustCompile(`ingot\.token=(\S+)`)

// boot fetches the boot document and returns the token in it, "" when there is none.
func (r *rig) boot() string {
	r.t.Helper()
	if match := tokenPattern.FindStringSubmatch(r.document()); match != nil {
		return match[1]
	}
	return ""
}

// document fetches the boot document.
func (r *rig) document() string {
	r.t.Helper()
	response, err := http.Get(r.service.URL + "/boot/" + bootMAC)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	script, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		r.t.Fatalf("boot document: %v, status %s", err, response.Status)
	}
	return string(script)
}

// run boots the server and lets the agent work on the disks.
func (r *rig) run(ctx context.Context, disks ...agent.Disk) (agent.ExitAction, error) {
	r.t.Helper()
	return agent.Run(ctx, r.config(r.boot(), disks...))
}

func (r *rig) config(token string, disks ...agent.Disk) agent.Config {
	return agent.Config{
		URL: r.service.URL, Token: token, Clock: fastClock{}, Log: slog.New(slog.NewTextHandler(r.log, nil)),
		Disks: func(context.Context) ([]agent.Disk, []hardware.UnusableDisk, error) { return disks, nil, nil },
		Inventory: func(context.Context) (hardware.Inventory, error) {
			return hardware.Inventory{SystemUUID: "4c4c4544-0042", CPUThreads: 2, NICs: []hardware.NIC{{Name: "eno1", MAC: bootMAC}}}, nil
		},
	}
}

// fastClock sleeps a hundredth of the duration and returns the true time.
type fastClock struct{ agent.SystemClock }

func (c fastClock) Sleep(ctx context.Context, d time.Duration) error {
	if d > time.Minute {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.SystemClock.Sleep(ctx, d/100)
}

// memoryDisk is a disk in memory that can lose its power. Writes since the last sync are then kept or lost at random.
type memoryDisk struct {
	info hardware.Disk
	data []byte
	// pending are the changes since the last sync, each with what was there before.
	pending []change
	// writes counts WriteAt, ZeroRange and Sync; at cutAt the power goes. failAt makes one fail instead.
	writes, cutAt, failAt int
	dead                  bool
	trace                 []string
	random                *rand.Rand
}

type change struct {
	off    int64
	before []byte
	after  []byte
}

var (
	errPower = errors.New("no power")
	errMedia = errors.New("medium error")
)

func newMemoryDisk(size int64, fill byte) *memoryDisk {
	return &memoryDisk{
		info: hardware.Disk{Name: "/dev/nvme0n1", SizeBytes: size}, data: bytes.Repeat([]byte{fill}, int(size)),
		cutAt: -1, failAt: -1, random: rand.New(rand.NewPCG(1, 2)),
	}
}

func (d *memoryDisk) Info() hardware.Disk { return d.info }
func (d *memoryDisk) SectorSize() int64   { return 512 }
func (d *memoryDisk) Close() error        { return nil }

func (d *memoryDisk) ReadAt(p []byte, off int64) (int, error) {
	if d.dead {
		return 0, errPower
	}
	return bytes.NewReader(d.data).ReadAt(p, off)
}

func (d *memoryDisk) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(d.data)) {
		return 0, fmt.Errorf("write of %d at %d: outside the disk", len(p), off)
	}
	if !d.dead {
		d.pending = append(d.pending, change{off, bytes.Clone(d.data[off:][:len(p)]), bytes.Clone(p)})
	}
	if err := d.step(fmt.Sprintf("write %d at %d", len(p), off)); err != nil {
		return 0, err
	}
	return copy(d.data[off:], p), nil
}

func (d *memoryDisk) ZeroRange(off, n int64) error {
	_, err := d.WriteAt(make([]byte, n), off)
	return err
}

func (d *memoryDisk) Sync() error {
	if err := d.step("sync"); err != nil {
		return err
	}
	d.pending = nil
	return nil
}

// step counts the operation and cuts the power at its number.
func (d *memoryDisk) step(what string) error {
	if d.dead {
		return errPower
	}
	d.trace = append(d.trace, what)
	d.writes++
	if d.writes == d.failAt {
		return errMedia
	}
	if d.writes == d.cutAt {
		d.cut()
		return errPower
	}
	return nil
}

// cut takes the power away: each sector written since the last sync is kept or lost at random.
func (d *memoryDisk) cut() {
	d.dead = true
	for i := len(d.pending) - 1; i >= 0; i-- {
		copy(d.data[d.pending[i].off:], d.pending[i].before)
	}
	for _, change := range d.pending {
		mode := d.random.IntN(3)
		for at := 0; at < len(change.after); at += 512 {
			if mode == 0 || mode == 1 && d.random.IntN(2) == 0 {
				copy(d.data[change.off+int64(at):], change.after[at:min(at+512, len(change.after))])
			}
		}
	}
}

func sha256Of(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func sha512Of(data []byte) string {
	sum := sha512.Sum512(data)
	return "sha512:" + hex.EncodeToString(sum[:])
}

func compressed(t testing.TB, data []byte, format string) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch format {
	case "raw":
		return data
	case "raw.gz":
		w = gzip.NewWriter(&out)
	case "raw.zst":
		var err error
		if w, err = zstd.NewWriter(&out); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// hintOneMiB lets small test disks be root devices.
func hintOneMiB(session *netboot.Session) { session.RootDevice.MinSizeBytes = 1 }
