package ironic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/bmc/bmctest"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// liveServer is a server that boots by virtual media.
type liveServer struct {
	*fixture
	*bmctest.Server
	agent *server.Agent
	// files is where its images are served, and fetched has the paths that Ironic has fetched the content of.
	files   string
	mu      sync.Mutex
	fetched []string
}

// newLiveServer returns a server with a simulated BMC. The site has registered its node with an ISO of Ironic's agent.
func newLiveServer(t *testing.T) *liveServer {
	t.Helper()
	personality, err := bmc.PersonalityNamed("media-two-devices")
	if err != nil {
		t.Fatal(err)
	}
	machine := bmctest.Start(t, personality)
	l := &liveServer{Server: machine}
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.Method == http.MethodGet {
			l.fetched = append(l.fetched, r.URL.Path)
		}
		_, _ = w.Write([]byte(r.URL.Path))
	}))
	t.Cleanup(files.Close)
	running := server.Start(t, server.Options{HardwareType: "redfish", FilesURL: files.URL})
	f := newFixture(t, ironic.Options{Endpoint: running.Endpoint, HardwareType: "redfish"})
	f.image.URL = files.URL + "/disk.raw"
	endpoint := machine.Endpoint()
	s := site{t, running.Endpoint}
	var n siteNode
	body := fmt.Sprintf(`{"name": "site-live", "driver": "redfish", "deploy_interface": "direct", "boot_interface": "redfish-virtual-media", "driver_info": {
		"redfish_address": %q, "redfish_username": %q, "redfish_password": %q, "redfish_verify_ca": false, "redfish_system_id": %q, "deploy_iso": %q}}`,
		endpoint.Address, endpoint.Username, endpoint.Password, bmc.PathSystem, files.URL+"/agent.iso")
	if status := s.send(http.MethodPost, "/nodes", body, &n); status != http.StatusCreated {
		t.Fatalf("register the node: status %d", status)
	}
	f.host.InstallerNode = n.UUID
	l.fixture, l.files, l.agent = f, files.URL, server.StartAgent(t, running.Endpoint, f.host.BootMAC, server.AgentOptions{})
	return l
}

// media returns the image in the virtual CD drive, and whether there is one in the virtual USB port, where the config drive goes.
func (l *liveServer) media() (cd string, hasDrive bool) {
	l.Helper()
	images := map[string]string{}
	for _, at := range l.Paths() {
		var slot struct{ Image string }
		if document, found := l.Document(at); found && path.Base(path.Dir(at)) == "VirtualMedia" && json.Unmarshal(document, &slot) == nil {
			images[path.Base(at)] = slot.Image
		}
	}
	if _, found := images["CD"]; !found || len(images) != 2 {
		l.Fatalf("expected two virtual drives, seen %v", images)
	}
	return images["CD"], images["RemovableDisk"] != ""
}

// expect checks what the server runs from: iso is the last one that Ironic has fetched for it, empty: it runs from its disk, which an image was written to so often.
func (l *liveServer) expect(step, iso string, writes int) {
	l.Helper()
	cd, hasDrive := l.media()
	steps, _ := l.agent.Done()
	written := slices.DeleteFunc(steps, func(step string) bool { return step != "write_image" })
	l.mu.Lock()
	last := slices.DeleteFunc(slices.Clone(l.fetched), func(path string) bool { return !strings.HasSuffix(path, "live.iso") })
	l.mu.Unlock()
	isLive := iso != ""
	if (cd != "") != isLive || hasDrive != isLive || isLive && last[len(last)-1] != iso || len(written) != writes || l.Power() != hardware.PowerOn {
		l.Errorf("%s: the CD is %q, config drive %v, fetched %v, %d images written, power %s", step, cd, hasDrive, last, len(written), l.Power())
	}
}

func TestARollGoesToALiveISOAndBack(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	l := newLiveServer(t)
	disk := l.image
	live := hardware.Image{URL: l.files + "/first-live.iso", Format: hardware.FormatLiveISO}
	l.image = live
	l.expectSucceeded(1, l.install)
	l.expect("a live ISO", "/first-live.iso", 0)
	l.restart()
	l.image = disk
	l.expectSucceeded(2, l.install)
	l.expect("then a disk image", "", 1)
	l.image = live
	l.expectSucceeded(3, l.install)
	l.expect("then the live ISO", "/first-live.iso", 1)
	l.image.URL = l.files + "/next-live.iso"
	l.expectSucceeded(4, l.install)
	l.expect("then the next one", "/next-live.iso", 1)
	l.expectSucceeded(5, l.eraseWith(hardware.EraseMetadata))
	if cd, hasDrive := l.media(); cd != "" || hasDrive || l.Power() != hardware.PowerOff {
		l.Errorf("after the release the CD is %q, config drive %v, power %s", cd, hasDrive, l.Power())
	}
}
