package ironic_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
)

const (
	// pollInterval is the time between two calls of a controller. Real Ironic takes real time.
	pollInterval = 100 * time.Millisecond
	// patience is when a test gives up.
	patience = 4 * time.Minute
)

// image is an image that nobody downloads: the interface fake does not, and the test's agent does not either.
var image = hardware.Image{
	URL: "http://images.example/a.raw", Checksum: "sha256:" + strings.Repeat("a1", 32), Format: "raw",
}

var hostCount atomic.Int64

// fixture is one host and an Installer that speaks to a real Ironic.
type fixture struct {
	*testing.T
	options   ironic.Options
	installer *ironic.Installer
	host      hardware.Host
	image     hardware.Image
}

// newFixture returns a new host, of the hardware type fake-hardware unless the options say another one.
func newFixture(t *testing.T, options ironic.Options) *fixture {
	t.Helper()
	number := hostCount.Add(1)
	if options.HardwareType == "" {
		options.HardwareType = "fake-hardware"
	}
	if options.Clock == nil {
		options.ListAge = pollInterval
	}
	options.Log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	f := &fixture{T: t, options: options, image: image, host: hardware.Host{
		UID: fmt.Sprintf("uid-%d", number), Namespace: "hall", Name: fmt.Sprintf("node-%d", number), BootMAC: fmt.Sprintf("52:54:00:00:%02x:%02x", number>>8, number&0xff),
		BMC: hardware.Endpoint{Address: "https://192.0.2.1", SystemPath: "/redfish/v1/Systems/1", Username: "root", Password: "bmc-password"},
	}}
	f.restart()
	return f
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(line []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

// restart starts another Installer, which knows only what Ironic has stored.
func (f *fixture) restart() { f.installer = ironic.New(f.options) }

func attemptOf(number int64) hardware.Attempt {
	return hardware.Attempt{Number: number, Deadline: time.Now().Add(time.Hour)}
}

func (f *fixture) install(attempt hardware.Attempt) error {
	return f.installer.Install(f.Context(), f.host, attempt, hardware.InstallSpec{
		Image: f.image, ReadConfigDrive: func(context.Context) (hardware.ConfigDrive, error) {
			return hardware.ConfigDrive{UserData: []byte("#cloud-config\n"), MetaData: []byte(`{"uuid": "a"}`)}, nil
		},
	})
}

func (f *fixture) inspect(attempt hardware.Attempt) error {
	return f.installer.Inspect(f.Context(), f.host, attempt, hardware.InspectByAgent)
}

func (f *fixture) cancel(attempt hardware.Attempt) error {
	return f.installer.Cancel(f.Context(), f.host, attempt)
}

func (f *fixture) eraseWith(mode hardware.EraseMode) func(hardware.Attempt) error {
	return func(attempt hardware.Attempt) error { return f.installer.Erase(f.Context(), f.host, attempt, mode) }
}

func (f *fixture) observe() hardware.Observation {
	f.Helper()
	observation, err := f.installer.Observe(f.Context(), f.host)
	if err != nil && hardware.KindOf(err) != hardware.Busy && hardware.KindOf(err) != hardware.Unreachable && hardware.ReasonOf(err) != hardware.ReasonInstallerMaintenance {
		f.Fatalf("observe: %v", err)
	}
	return observation
}

// repeat calls until the observation satisfies reached, as a controller does: refusals that pass are no failure.
func (f *fixture) repeat(call func() error, reached func(hardware.Observation) bool) hardware.Observation {
	f.Helper()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for begun := time.Now(); time.Since(begun) < patience; <-ticker.C {
		switch err := call(); hardware.KindOf(err) {
		case "":
			if err != nil {
				f.Fatalf("an error without a kind: %v", err)
			}
		case hardware.Busy, hardware.Unreachable, hardware.Conflict:
		default:
			f.Fatal(err)
		}
		if seen := f.observe(); reached(seen) {
			return seen
		}
	}
	seen := f.observe()
	f.Fatalf("not reached: power %s, attempt %+v", seen.Power, seen.Attempt)
	return seen
}

// untilEnded repeats the call until the attempt has ended.
func (f *fixture) untilEnded(number int64, call func(hardware.Attempt) error) hardware.AttemptStatus {
	f.Helper()
	attempt := attemptOf(number)
	return *f.repeat(func() error { return call(attempt) }, func(seen hardware.Observation) bool {
		return seen.Attempt != nil && seen.Attempt.Number == number && seen.Attempt.State != hardware.AttemptRunning
	}).Attempt
}

func (f *fixture) expectSucceeded(number int64, call func(hardware.Attempt) error) {
	f.Helper()
	if status := f.untilEnded(number, call); status.State != hardware.AttemptSucceeded || status.Reason != "" {
		f.Fatalf("expected success, the attempt is %s at %s: %s: %s", status.State, status.Step, status.Reason, status.Message)
	}
}

func (f *fixture) expectFailed(number int64, call func(hardware.Attempt) error, reason hardware.Reason) hardware.AttemptStatus {
	f.Helper()
	status := f.untilEnded(number, call)
	if status.State != hardware.AttemptFailed || status.Reason != reason || status.Message == "" {
		f.Fatalf("expected failure by %s, the attempt is %s at %s: %s: %s", reason, status.State, status.Step, status.Reason, status.Message)
	}
	return status
}

func (f *fixture) expectPower(want hardware.PowerState) {
	f.Helper()
	since := time.Now()
	f.repeat(func() error {
		return f.installer.SetPower(f.Context(), f.host, hardware.PowerChange{Desired: want, Since: since})
	}, func(seen hardware.Observation) bool { return seen.Power == want })
}

// ask sends a request for the host's node to Ironic, as another client does: again while a conductor has the node's lock.
func (f *fixture) ask(method, path, body string) {
	f.Helper()
	var status int
	var answer []byte
	var err error
	for {
		status, answer, err = server.Ask(f.Context(), f.options.Endpoint, method, "/v1/nodes/"+f.host.Namespace+"~"+f.host.Name+path, body)
		if status != http.StatusConflict || !strings.Contains(string(answer), "is locked by host") || f.Context().Err() != nil {
			break
		}
	}
	if err != nil || status >= http.StatusMultipleChoices {
		f.Fatalf("%s %s: %d, %v: %s", method, path, status, err, answer)
	}
}

// casesAtOnce is how many cases run at the same time: they wait for Ironic most of their time.
const casesAtOnce = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", casesAtOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
