package conformance

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// SystemPath is where the BMC's server is.
const SystemPath = "/redfish/v1/Systems/1"

const (
	systemsPath  = "/redfish/v1/Systems"
	hgxPath      = "/redfish/v1/Systems/HGX_Baseboard_0"
	sessionsPath = "/redfish/v1/SessionService/Sessions"
	resetPath    = SystemPath + "/Actions/ComputerSystem.Reset"
	managerPath  = "/redfish/v1/Managers/1"
	mediaPath    = "/VirtualMedia/Cd"
	insertAction = "/Actions/VirtualMedia.InsertMedia"
	ejectAction  = "/Actions/VirtualMedia.EjectMedia"
)

// Quirks make a BMC behave like some of the field's. The zero value is a well-behaved one.
type Quirks struct {
	// NoBootMode: there is no BootSourceOverrideMode, and sending it is an error (Supermicro).
	NoBootMode bool
	// ModeReadOnly: BootSourceOverrideMode is there, and sending it is an error.
	ModeReadOnly bool
	// NullBootTarget: the override is accepted and reads back null (Dell).
	NullBootTarget bool
	// KeepsBootTarget: the override is accepted and stays what it was.
	KeepsBootTarget bool
	// BootTargets are the targets offered; nil: Pxe, Hdd and Cd.
	BootTargets []string
	// HGXBaseboard: a second, physical, resettable ComputerSystem, and GPUs in chassis of their own (NVIDIA HGX).
	HGXBaseboard bool
	// SecondSystem: another system that is as good as the first.
	SecondSystem bool
	// ETag: changes need If-Match with the current ETag.
	ETag bool
	// WeakETag: the ETag is handed out weak and compared strongly.
	WeakETag bool
	// ResetTypes are the reset types offered; nil: On, ForceOff, GracefulShutdown, ForceRestart, PushPowerButton.
	ResetTypes []string
	// ResetInfo: they are in an ActionInfo resource only.
	ResetInfo bool
	// IgnorePowerOn is how many power-ons are accepted without effect; -1: all.
	IgnorePowerOn int
	// IgnorePowerOff is the same for ForceOff.
	IgnorePowerOff int
	// BusyReset: every reset is answered with 503, while reads are answered.
	BusyReset bool
	// RefuseSame: asking for the present power state is answered with 409 (iDRAC).
	RefuseSame bool
	// MediaUnderSystem: virtual media are under the system and not under the manager.
	MediaUnderSystem bool
	// StaleMedia: the first insert is refused with VRM0021 until there was an eject (iDRAC).
	StaleMedia bool
	// NoLocation: a new session has no Location header, only its body names it.
	NoLocation bool
	// PlainHTTP serves without TLS.
	PlainHTTP bool
}

// BMC is a Redfish service in memory, over HTTPS on loopback with a certificate and credentials of its own.
type BMC struct {
	server *httptest.Server
	quirks Quirks

	mu                 sync.Mutex
	username, password string
	sessions           map[string]string // token to path
	power              hardware.PowerState
	enabled, target    string // boot override
	tag                int
	media              string
	stale              bool
	tree               map[string]map[string]any
	requests           []string
	inFlight, most     int
	overlay            func(http.ResponseWriter, *http.Request) bool
	onPower            func(hardware.PowerState, hardware.BootSource)
}

// StartBMC starts a BMC with the power off, and stops it with the test.
func StartBMC(t testing.TB, quirks Quirks) *BMC {
	t.Helper()
	b := &BMC{
		quirks: quirks, username: "ingot-operator", password: `p"ss&w/rd-` + randomText(), sessions: map[string]string{},
		power: hardware.PowerOff, enabled: "Disabled", target: "None", stale: quirks.StaleMedia,
	}
	b.tree = staticTree(quirks)
	b.server = httptest.NewUnstartedServer(http.HandlerFunc(b.serve))
	b.server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are part of the tests
	if quirks.PlainHTTP {
		b.server.Start()
	} else {
		b.server.StartTLS()
	}
	t.Cleanup(b.server.Close)
	return b
}

// Endpoint is how to reach the BMC, credentials and CA included.
func (b *BMC) Endpoint() hardware.Endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := hardware.Endpoint{Address: b.server.URL, Username: b.username, Password: b.password, InsecureSkipVerify: b.quirks.PlainHTTP}
	if !b.quirks.PlainHTTP {
		e.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.server.Certificate().Raw})
	}
	return e
}

// Overlay answers requests before the BMC does; it returns false to leave a request to the BMC. nil takes it away.
func (b *BMC) Overlay(overlay func(http.ResponseWriter, *http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.overlay = overlay
}

// OnPower is called with every change of power, and with the source that a power-on boots from ("" when off). It must not
// call the BMC back.
func (b *BMC) OnPower(changed func(hardware.PowerState, hardware.BootSource)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onPower = changed
}

// Power is the real power state.
func (b *BMC) Power() hardware.PowerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.power
}

// SetPower changes the power as a hand on the machine would.
func (b *BMC) SetPower(state hardware.PowerState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setPower(state)
}

// Reboot is a warm reboot by the operating system: the power stays on; it returns what is booted.
func (b *BMC) Reboot() hardware.BootSource {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeOverride()
}

// Override is the boot override as a client would read it: enabled and target.
func (b *BMC) Override() (enabled, target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.enabled, b.target
}

// Media is the URL of the inserted image, or "".
func (b *BMC) Media() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.media
}

// Sessions is how many sessions are open.
func (b *BMC) Sessions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sessions)
}

// Tokens are the tokens of the open sessions.
func (b *BMC) Tokens() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.sessions))
}

// ForgetSessions ends all sessions as a restart of the BMC would.
func (b *BMC) ForgetSessions() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.sessions)
}

// SetPassword changes the account's password; sessions stay.
func (b *BMC) SetPassword(password string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.password = password
}

// Requests returns "METHOD PATH" of the requests since the last call.
func (b *BMC) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	requests := b.requests
	b.requests = nil
	return requests
}

// MostAtOnce is the largest number of requests that were in flight at the same time.
func (b *BMC) MostAtOnce() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most
}

// Document returns a resource as it is served now.
func (b *BMC) Document(path string) ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	document, ok := b.document(path)
	if !ok {
		return nil, false
	}
	text, err := json.Marshal(document)
	return text, err == nil
}

// Paths are all the paths that can be read.
func (b *BMC) Paths() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append(slices.Sorted(maps.Keys(b.tree)), SystemPath)
}

// Remove takes resources out, by prefix.
func (b *BMC) Remove(prefix string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.tree, func(path string, _ map[string]any) bool { return strings.HasPrefix(path, prefix) })
}

func (b *BMC) setPower(state hardware.PowerState) {
	if b.power == state {
		return
	}
	b.power = state
	var source hardware.BootSource
	if state == hardware.PowerOn {
		source = b.takeOverride()
	}
	if b.onPower != nil {
		b.onPower(state, source)
	}
}

func (b *BMC) takeOverride() hardware.BootSource {
	source := hardware.BootDisk
	if b.enabled == "Once" {
		switch b.target {
		case "Pxe":
			source = hardware.BootNetwork
		case "Cd":
			source = hardware.BootMedia
		}
		b.enabled, b.target = "Disabled", "None"
		b.tag++
	}
	return source
}

func (b *BMC) etag() string { return fmt.Sprintf(`"%d"`, b.tag) }

func randomText() string {
	raw := make([]byte, 8)
	if _, err := rand.Read(raw); err != nil {
		panic(err) // crypto/rand does not fail
	}
	return hex.EncodeToString(raw)
}
