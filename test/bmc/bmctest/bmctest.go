// Package bmctest starts a simulated BMC with a simple server behind it, for tests of Redfish clients and of what is built on
// them. The server's power changes at once, and a test can read and intercept the BMC's requests.
package bmctest

import (
	"crypto/rand"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

// Server is a server with its BMC.
type Server struct {
	*bmc.BMC
	requests recorder

	clock atomic.Pointer[func() time.Time]

	mu      sync.Mutex
	power   hardware.PowerState
	onPower func(hardware.PowerState, hardware.BootSource)
}

// Start starts a BMC whose server is off, and stops it with the test.
func Start(t testing.TB, personality bmc.Personality) *Server {
	t.Helper()
	return StartAt(t, personality, "")
}

// StartAt does the same at an address with a port; empty: a free port on 127.0.0.1.
func StartAt(t testing.TB, personality bmc.Personality, address string) *Server {
	t.Helper()
	authority, err := bmc.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{power: hardware.PowerOff}
	s.BMC = bmc.New(bmc.Options{
		Name: "server", Address: address, Machine: s, Hardware: Inventory(), Authority: authority, Username: "ingot-operator", Password: `p"ss&w/rd-` + rand.Text(),
		Personality: personality, Wrap: s.requests.wrap, Now: s.now,
	})
	if err := s.BMC.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Inventory returns the hardware that the BMC reports: two sockets, NICs, drives and H100 GPUs (10de:2330), and a ConnectX-7 (15b3:1021).
// The model has a trailing space and the drives have upper-case names, as many BMCs report them.
func Inventory() hardware.Inventory {
	return hardware.Inventory{
		Manufacturer: "Example", Model: "GX-8 ", SerialNumber: "SN0001", SystemUUID: "03020100-0504-0706-0809-0a0b0c0d0e0f", BIOSVersion: "2.4.1",
		Architecture: "amd64", CPUModel: "Example CPU 9000", CPUThreads: 224, MemoryBytes: 128 << 30,
		NICs: []hardware.NIC{
			{Name: "NIC.0", MAC: "52:54:00:aa:00:02", SpeedMbps: 25000, Up: true},
			{Name: "NIC.1", MAC: "52:54:00:aa:00:01", SpeedMbps: 25000, Up: true},
		},
		Disks: []hardware.Disk{
			{Model: "NVMe 9", SerialNumber: "DRIVE0", WWN: "EUI.0025385B71B00000", SizeBytes: 3840755982336},
			{Model: "NVMe 9", SerialNumber: "DRIVE1", WWN: "EUI.0025385B71B00001", SizeBytes: 3840755982336},
		},
		PCIDevices: []hardware.PCIDevice{
			{VendorID: "10de", DeviceID: "2330", Class: "030200", Model: "H100 SXM5"},
			{VendorID: "10de", DeviceID: "2330", Class: "030200", Model: "H100 SXM5"},
			{VendorID: "15b3", DeviceID: "1021", Class: "020000", Model: "ConnectX-7"},
		},
	}
}

// SetClock sets the clock by which the BMC counts requests; without it that is time.Now.
func (s *Server) SetClock(now func() time.Time) {
	s.clock.Store(&now)
}

func (s *Server) now() time.Time {
	if clock := s.clock.Load(); clock != nil {
		return (*clock)()
	}
	return time.Now()
}

// OnPower sets the function that is called with every change of power, and with the source that a power-on boots from ("" when
// off). It must not call the Server.
func (s *Server) OnPower(changed func(hardware.PowerState, hardware.BootSource)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onPower = changed
}

// Power implements bmc.Machine.
func (s *Server) Power() hardware.PowerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.power
}

// SetPower changes the power without the BMC, as somebody at the server does.
func (s *Server) SetPower(state hardware.PowerState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setPower(state)
}

// Reset implements bmc.Machine.
func (s *Server) Reset(reset bmc.Reset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch reset {
	case bmc.ResetOn:
		s.setPower(hardware.PowerOn)
	case bmc.ResetForceOff, bmc.ResetGracefulShutdown:
		s.setPower(hardware.PowerOff)
	case bmc.ResetForceRestart, bmc.ResetGracefulRestart:
		s.setPower(hardware.PowerOff)
		s.setPower(hardware.PowerOn)
	case bmc.ResetPushPowerButton:
		if s.power == hardware.PowerOn {
			s.setPower(hardware.PowerOff)
		} else {
			s.setPower(hardware.PowerOn)
		}
	}
}

// Reboot is a warm reboot by the operating system: the power stays on. It returns the source that the server boots from.
func (s *Server) Reboot() hardware.BootSource {
	if source := s.TakeBoot(); source != "" {
		return source
	}
	return hardware.BootDisk
}

// setPower is called with the lock held.
func (s *Server) setPower(state hardware.PowerState) {
	if s.power == state {
		return
	}
	s.power = state
	var source hardware.BootSource
	if state == hardware.PowerOn {
		source = s.Reboot()
	}
	if s.onPower != nil {
		s.onPower(state, source)
	}
}

// Intercept sets the handler that gets requests before the BMC does. It returns false to leave a request to the BMC; nil
// removes it.
func (s *Server) Intercept(handle func(http.ResponseWriter, *http.Request) bool) {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	s.requests.intercept = handle
}

// Requests returns "METHOD PATH" of the requests since the last call.
func (s *Server) Requests() []string {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	requests := s.requests.received
	s.requests.received = nil
	return requests
}

// MostConcurrent returns the largest number of requests that were in flight at the same time.
func (s *Server) MostConcurrent() int {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return s.requests.most
}

// recorder records the requests of a BMC and lets a test answer them.
type recorder struct {
	mu             sync.Mutex
	received       []string
	inFlight, most int
	intercept      func(http.ResponseWriter, *http.Request) bool
}

func (c *recorder) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.received = append(c.received, r.Method+" "+r.URL.Path)
		c.inFlight++
		c.most = max(c.most, c.inFlight)
		intercept := c.intercept
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			c.inFlight--
			c.mu.Unlock()
		}()
		if intercept == nil || !intercept(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}
