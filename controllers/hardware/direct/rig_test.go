package direct_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/bmc/bmctest"
	"github.com/ingot-dev/ingot/test/conformance"
)

const bootMAC = "52:54:00:aa:00:01"

// Durations of what the server does.
const (
	postTime   = 3 * time.Minute
	loadTime   = time.Minute
	workTime   = 5 * time.Minute
	verifyTime = time.Minute
	imageBytes = 10 << 30
)

// phase is what the server does while it is on.
type phase string

const (
	posting phase = "post"
	loading phase = "load"
	agent   phase = "agent"
	done    phase = "done" // the agent has ended
	disk    phase = "disk"
)

// rig is a server with a simulated BMC and a scripted agent that uses the real boot service.
type rig struct {
	t       *testing.T
	faults  conformance.Faults
	bmc     *bmctest.Server
	store   *store
	service *netboot.Service
	client  *redfish.Client

	installer *direct.Installer
	// endpoint is what the installer knows of the BMC.
	endpoint hardware.Endpoint
	// writes is how often an image was written completely.
	writes int
	ways   []hardware.BootSource
	// isUndecided has the host without ways where ways are empty.
	isUndecided bool
	// authorities are those of the boot service's HTTPS; nil: it has none.
	authorities []byte
	// secureURL is the boot service's by HTTPS; empty: it has none.
	secureURL string
	// isSigned: what the network boots is signed.
	isSigned bool
	// log is the installer's.
	log bytes.Buffer

	// mu guards the fields that a change of power changes in the goroutine of the BMC.
	mu          sync.Mutex
	now         time.Time
	phase       phase
	since       time.Time
	source      hardware.BootSource
	diskContent string
	// booted are the sources of all boots.
	booted []string
	// silent are the sources from which the firmware boots nothing.
	silent       []hardware.BootSource
	token        string
	agentKey     string
	instructions protocol.Instructions
	running      string
}

func newRig(t *testing.T, faults conformance.Faults) *rig {
	return newRigWith(t, faults, bmc.Personality{Power: bmc.PowerRules{PresentState: bmc.PSU501}})
}

// newRigWith makes a rig whose BMC has the personality.
func newRigWith(t *testing.T, faults conformance.Faults, personality bmc.Personality) *rig {
	r := &rig{
		t: t, faults: faults, now: time.Date(2026, 6, 1, 8, 0, 0, 123456789, time.UTC), diskContent: conformance.DiskForeign,
		bmc:   bmctest.Start(t, personality),
		store: &store{session: netboot.Session{HostUID: "uid-1", BootMAC: bootMAC}},
	}
	service, err := netboot.New(netboot.Options{
		Store: r.store, Key: func(context.Context) ([]byte, error) { return bytes.Repeat([]byte("k"), 32), nil }, Clock: r.Now,
		BaseURL: "http://boot.example", Files: fstest.MapFS{"kernel": {}, "initrd": {}}, Kernel: "kernel", Initrd: "initrd",
		Media: func(line string) (io.ReadSeeker, error) { return strings.NewReader(line), nil }, Program: func(line string) (io.ReadSeeker, error) { return strings.NewReader(line), nil },
		HostSettings: func(context.Context, netboot.Session) (netboot.HostSettings, error) {
			return netboot.HostSettings{SecureURL: r.secureURL}, nil
		},
		Pins: func(context.Context) ([]string, error) { return []string{"sha256:" + strings.Repeat("a", 64)}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.service = service
	r.client = redfish.New(redfish.Options{Clock: r.Now, IdleTimeout: 24 * time.Hour})
	t.Cleanup(func() {
		r.SilenceBMC(false)
		if err := r.client.Close(context.Background()); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	r.bmc.SetClock(r.Now)
	r.bmc.OnPower(r.powerChanged)
	r.bmc.SetFaults(bmcFaults(faults))
	r.bmc.SetPower(hardware.PowerOn)
	r.Advance(postTime + time.Second)
	r.TakeCredentials()
	r.Restart()
	return r
}

// bmcFaults are those of the suite's faults that are the BMC's. Both counts end with -1 for all requests.
func bmcFaults(faults conformance.Faults) bmc.Faults {
	out := bmc.Faults{SilentPowerOn: faults.IgnorePowerOn, SilentPowerOff: faults.IgnorePowerOff}
	if faults.RefusePower {
		out.BusyResets = bmc.All
	}
	return out
}

func (r *rig) Installer() hardware.Installer { return r.installer }

func (r *rig) Restart() { r.installer = r.newInstaller() }

func (r *rig) Other() hardware.Installer { return r.newInstaller() }

// image is what the suite installs.
var image = hardware.Image{URL: "http://images.example/a.raw.zst", Checksum: "sha256:" + strings.Repeat("a1", 32), Format: "raw.zst"}

func (r *rig) Image() hardware.Image { return image }

func (r *rig) Writes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

func (r *rig) RotateCredentials() { r.bmc.SetPassword("another password") }
func (r *rig) TakeCredentials()   { r.endpoint = r.bmc.Endpoint() }

func (r *rig) Occupy(busy bool) { r.bmc.SetFaults(bmcFaults(conformance.Faults{RefusePower: busy})) }

func (r *rig) Vanish(gone bool) {
	if gone {
		r.CutPower()
	}
	r.SilenceBMC(gone)
}

func (r *rig) FillLimit(bool) { r.t.Fatal("BMCs have no limit of servers at work") }

func (r *rig) newInstaller() *direct.Installer {
	return direct.New(direct.Options{
		BMCs: r.client, Store: r.store, MediaURLs: r.service.MediaURLs, ProgramURLs: r.service.ProgramURLs, Clock: r.Now,
		Log: slog.New(slog.NewTextHandler(&r.log, nil)), BootAuthorities: func(context.Context) ([]byte, error) { return r.authorities, nil },
	})
}

func (r *rig) Host() hardware.Host {
	return hardware.Host{UID: "uid-1", Namespace: "rack-1", Name: "gpu-1", BootMAC: bootMAC, BMC: r.endpoint, BootWays: r.bootWays(), HasSignedBoot: r.isSigned}
}

func (r *rig) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) Power() hardware.PowerState { return r.bmc.Power() }
func (r *rig) CutPower()                  { r.bmc.SetPower(hardware.PowerOff) }

func (r *rig) SilenceBMC(silent bool) {
	if !silent {
		r.bmc.Intercept(nil)
		return
	}
	r.bmc.Intercept(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
}

func (r *rig) Disk() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.diskContent
}

func (r *rig) Running() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// powerChanged is called by the BMC.
func (r *rig) powerChanged(state hardware.PowerState, source hardware.BootSource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running, r.phase = "", ""
	if state == hardware.PowerOn {
		r.startBoot(source)
	}
}

// startBoot starts a boot. The caller holds mu.
func (r *rig) startBoot(source hardware.BootSource) {
	r.booted = append(r.booted, string(source))
	r.phase, r.since, r.source, r.running = posting, r.now, source, ""
}

func (r *rig) Advance(d time.Duration) {
	for range int(d / time.Second) {
		r.mu.Lock()
		r.now = r.now.Add(time.Second)
		r.mu.Unlock()
		r.tick()
	}
}

// tick does what the server does in one second.
func (r *rig) tick() {
	r.mu.Lock()
	now, at, source, spent := r.now, r.phase, r.source, r.now.Sub(r.since)
	r.mu.Unlock()
	switch {
	case at == posting && spent >= postTime:
		if r.isSilent(source) {
			return
		} else if source.HasOwnImage() && r.faults.DeadBootNIC {
			r.bootDisk()
		} else if source == hardware.BootMedia {
			r.bootImage(r.bmc.BootedMedia(), now)
		} else if source == hardware.BootPinned {
			r.bootImage(r.bmc.BootedURI(), now)
		} else if source != hardware.BootNetwork {
			r.bootDisk()
		} else if !r.faults.DeadBootNIC {
			r.bootNetwork(now)
		}
	case at == loading && spent >= loadTime && !r.faults.NoAgent:
		r.register(now)
	case at == agent && now.Second()%10 == 0:
		r.runAgent(now, spent)
	}
}

func (r *rig) enter(p phase, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase, r.since = p, now
}

func (r *rig) bootDisk() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase = disk
	if r.diskContent != conformance.DiskErased {
		r.running = r.diskContent
	}
}

// serverDisk is the disk of the server.
var serverDisk = hardware.Disk{Name: "/dev/nvme0n1", SerialNumber: "S1", SizeBytes: 64 << 30}

var tokenArgument = regexp.MustCompile(cmdline.ArgToken + `=(\S+)`)

func (r *rig) bootNetwork(now time.Time) {
	status, body := r.request(http.MethodGet, "/boot/"+bootMAC, nil)
	switch found := tokenArgument.FindSubmatch(body); {
	case found != nil:
		r.mu.Lock()
		r.token = string(found[1])
		r.mu.Unlock()
		r.enter(loading, now)
	case bytes.Contains(body, []byte("poweroff")):
		r.bmc.SetPower(hardware.PowerOff)
	case status == http.StatusOK:
		r.bootDisk()
	}
}

// isSilent reports whether a boot from the source ends in the firmware.
func (r *rig) isSilent(source hardware.BootSource) bool { return slices.Contains(r.silent, source) }

// bootImage boots the server's own image at the URL, whose content is the command line.
func (r *rig) bootImage(url string, now time.Time) {
	_, path, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(url, "https://"), "http://"), "/")
	path = "/" + path
	status, body := r.request(http.MethodGet, path, nil)
	found := tokenArgument.FindSubmatch(body)
	if status != http.StatusOK || found == nil {
		r.bootDisk()
		return
	}
	r.mu.Lock()
	r.token = string(found[1])
	r.mu.Unlock()
	r.enter(loading, now)
}

func (r *rig) register(now time.Time) {
	r.mu.Lock()
	r.agentKey = fmt.Sprintf("%064x", now.UnixNano())
	r.mu.Unlock()
	disks := []hardware.Disk{serverDisk}
	if r.faults.MissesDisk {
		disks = append(disks, hardware.Disk{Name: "/dev/nvme1n1", SerialNumber: "S2", SizeBytes: 64 << 30})
	}
	status, body := r.request(http.MethodPost, protocol.PathRegister, protocol.Registration{Inventory: hardware.Inventory{
		SystemUUID: "0f0e0d0c-0000-0000-0000-000000000001", SerialNumber: "SN0001", NICs: []hardware.NIC{{Name: "eno1", MAC: bootMAC}}, Disks: disks,
	}})
	if status != http.StatusOK {
		r.enter(done, now)
		return
	}
	r.mu.Lock()
	if err := json.Unmarshal(body, &r.instructions); err != nil {
		r.t.Errorf("instructions %s: %v", body, err)
	}
	r.mu.Unlock()
	r.enter(agent, now)
}

// runAgent does the next part of the agent's work. spent is the time since its registration.
func (r *rig) runAgent(now time.Time, spent time.Duration) {
	step, last := hardware.StepWriting, conformance.DiskPartial
	if r.instructions.Operation == hardware.OpErase {
		step, last = hardware.StepErasing, conformance.DiskErased
	}
	switch {
	case r.faults.DiskError:
		r.setDisk(conformance.DiskPartial)
		r.report(protocol.PathResult, protocol.Result{Reason: hardware.ReasonDiskError, Message: "write /dev/nvme0n1: input/output error"})
		r.enter(done, now)
	case r.faults.BootLoop && spent >= time.Minute:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.startBoot(hardware.BootNetwork)
	case r.faults.AgentHangs && spent >= time.Minute:
	case r.instructions.Operation == hardware.OpInspect:
		if r.faults.BootLoop || r.faults.AgentHangs {
			return
		}
		r.report(protocol.PathResult, protocol.Result{})
		r.enter(done, now)
	case spent < workTime:
		r.setDisk(conformance.DiskPartial)
		r.report(protocol.PathProgress, protocol.Progress{Step: step, DoneBytes: int64(imageBytes * spent / workTime), TotalBytes: imageBytes})
	case spent < workTime+verifyTime:
		r.report(protocol.PathProgress, protocol.Progress{Step: hardware.StepVerifying, DoneBytes: imageBytes, TotalBytes: imageBytes})
	case r.faults.WrongDigest:
		r.report(protocol.PathResult, protocol.Result{Reason: hardware.ReasonDigestMismatch, Message: "expected a1, got b2"})
		r.enter(done, now)
	default:
		r.finishWork(now, last)
	}
}

func (r *rig) setDisk(content string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.diskContent = content
}

func (r *rig) finishWork(now time.Time, last string) {
	result := protocol.Result{RootDisk: &serverDisk}
	if r.instructions.Operation == hardware.OpErase {
		method := map[hardware.EraseMode]hardware.EraseMethod{hardware.EraseFull: hardware.MethodOverwrite, hardware.EraseMetadata: hardware.MethodMetadata}
		result.RootDisk, result.Evidence = nil, []hardware.DiskEvidence{{
			Disk: serverDisk, Method: method[r.instructions.Erase], Bytes: serverDisk.SizeBytes, Result: hardware.DiskErased,
		}}
	}
	if r.report(protocol.PathResult, result) >= 300 {
		r.enter(done, now)
		return
	}
	if r.instructions.Operation == hardware.OpErase {
		r.mu.Lock()
		r.diskContent = last
		r.mu.Unlock()
		r.enter(done, now)
		return
	}
	source := r.bmc.Reboot()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.diskContent = r.instructions.Image.Checksum
	r.writes++
	r.startBoot(source)
}

func (r *rig) report(path string, message any) int {
	status, _ := r.request(http.MethodPost, path, message)
	return status
}

// request sends a request to the boot service.
func (r *rig) request(method, path string, message any) (int, []byte) {
	body, err := json.Marshal(message)
	if err != nil {
		r.t.Errorf("%v", err)
	}
	request := httptest.NewRequest(method, path, bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set(protocol.HeaderKey, r.agentKey)
	recorder := httptest.NewRecorder()
	r.service.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.Bytes()
}

// bootWays returns the ways of the host; the network where a test names none.
func (r *rig) bootWays() []hardware.BootSource {
	if r.isUndecided || len(r.ways) > 0 {
		return r.ways
	}
	return []hardware.BootSource{hardware.BootNetwork}
}
