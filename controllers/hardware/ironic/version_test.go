package ironic_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// Headers with the version that is asked for and the latest one that the server speaks.
const (
	versionHeader    = "X-Openstack-Ironic-Api-Version"
	maxVersionHeader = "X-Openstack-Ironic-Api-Maximum-Version"
)

// speakAtMost makes the front that of an Ironic whose latest version is 1.minor: it says so, and refuses later ones as such an Ironic does.
func (r *recorder) speakAtMost(minor int) {
	r.refuse = func(request *http.Request) int {
		if asked, err := strconv.Atoi(strings.TrimPrefix(request.Header.Get(versionHeader), "1.")); err == nil && asked > minor {
			return http.StatusNotAcceptable
		}
		return 0
	}
	r.change = func(response *http.Response) { response.Header.Set(maxVersionHeader, "1."+strconv.Itoa(minor)) }
}

// Ironic's own latest version here, and the one with the inventory of a node.
const latestMinor, inventoryMinor = 82, 81

func TestEveryVersionOfIronicWorksOrIsRefusedByName(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	running := server.Start(t, server.Options{})
	t.Run("cases", func(t *testing.T) {
		t.Run("a version that is too old is refused, and one that is upgraded is not", func(t *testing.T) {
			t.Parallel()
			front := newRecorder(t, running.Endpoint)
			front.speakAtMost(50)
			f := newFixture(t, ironic.Options{Endpoint: front.URL, DeployInterface: "fake"})
			_, err := f.installer.Observe(t.Context(), f.host)
			expectOutdated(t, err)
			expectOutdated(t, f.install(attemptOf(1)))
			front.speakAtMost(latestMinor)
			f.until("connected", func() bool { _, err := f.installer.Observe(t.Context(), f.host); return err == nil })
			f.expectSucceeded(1, f.install)
		})
		t.Run("a node is created with the interfaces that the provider names", func(t *testing.T) {
			t.Parallel()
			for _, options := range []ironic.Options{{BootInterface: "none-such"}, {DeployInterface: "none-such"}, {NetworkInterface: "none-such"}} {
				options.Endpoint = running.Endpoint
				err := newFixture(t, options).inspect(attemptOf(1))
				if hardware.ReasonOf(err) != hardware.ReasonInstallerInvalid || !strings.Contains(err.Error(), "none-such") {
					t.Errorf("%+v: expected a refusal of the interface, seen %v", options, err)
				}
			}
		})
		for minor, threads := range map[int]int{56: 4, 60: 4, inventoryMinor: 8, latestMinor: 8} {
			t.Run("a node is inspected and installed by version 1."+strconv.Itoa(minor), func(t *testing.T) {
				t.Parallel()
				front := newRecorder(t, running.Endpoint)
				front.speakAtMost(minor)
				f := newFixture(t, ironic.Options{Endpoint: front.URL, DeployInterface: "fake"})
				f.lives(running, front, minor, threads)
			})
		}
	})
}

// expectOutdated checks that the error says what to do.
func expectOutdated(t *testing.T, err error) {
	t.Helper()
	expectKind(t, err, hardware.Unsupported)
	if hardware.ReasonOf(err) != hardware.ReasonInstallerUnsupported || !strings.Contains(err.Error(), "upgrade Ironic") || !strings.Contains(err.Error(), "1.50") {
		t.Errorf("the server speaks 1.50 at most, and the error is %s: %v", hardware.ReasonOf(err), err)
	}
}

// lives inspects and installs the node, whose properties have 4 threads and whose inventory has 8.
func (f *fixture) lives(running *server.Server, front *recorder, minor, threads int) {
	attempt := attemptOf(1)
	f.repeat(func() error { return f.inspect(attempt) }, func(seen hardware.Observation) bool { return seen.Attempt != nil })
	running.StoreInventory(f.name(), inspected, "{}")
	running.Query("update nodes set properties = '{\"cpus\": \"4\", \"cpu_arch\": \"x86_64\"}' where name = ?", f.name())
	f.expectSucceeded(1, f.inspect)
	found := f.observe().Inventory
	if found == nil || found.CPUThreads != threads || found.Architecture != "amd64" || len(found.NICs) != 1 || found.NICs[0].MAC != f.host.BootMAC {
		f.Errorf("expected %d threads and the NIC of the port, the inventory is %+v", threads, found)
	}
	f.expectSucceeded(2, f.install)
	want := "1." + strconv.Itoa(min(minor, latestMinor))
	front.mu.Lock()
	defer front.mu.Unlock()
	for _, request := range front.seen {
		if asked := request.Header.Get(versionHeader); asked != want && request.URL.Path != "/v1/" {
			f.Errorf("%s %s asks for version %q, expected %s", request.Method, request.URL.Path, asked, want)
		}
	}
}
