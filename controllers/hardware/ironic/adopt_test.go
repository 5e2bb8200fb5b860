package ironic_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// siteNode is a node as another client of Ironic reads it.
type siteNode struct {
	UUID       string         `json:"uuid"`
	Name       string         `json:"name"`
	State      string         `json:"provision_state"`
	Changed    string         `json:"provision_updated_at"`
	Power      string         `json:"power_state"`
	Driver     string         `json:"driver"`
	DriverInfo map[string]any `json:"driver_info"`
	Extra      map[string]any `json:"extra"`
	// Instance is its instance_uuid.
	Instance string `json:"instance_uuid"`
	Cleaning *bool  `json:"automated_clean"`
}

// site is another client of Ironic, which has registered nodes before Ingot knows them.
type site struct {
	*testing.T
	endpoint string
}

func (s site) send(method, path, body string, into any) (status int) {
	s.Helper()
	status, answer, err := server.Ask(s.Context(), s.endpoint, method, "/v1"+path, body)
	if err != nil {
		s.Fatal(err)
	}
	if into != nil && json.Unmarshal(answer, into) != nil {
		s.Fatalf("%s %s: %d: %s", method, path, status, answer)
	}
	return status
}

func (s site) node(name string) (n siteNode) {
	s.Helper()
	if status := s.send(http.MethodGet, "/nodes/"+name, "", &n); status != http.StatusOK {
		s.Fatalf("read the node %s: status %d", name, status)
	}
	return n
}

// register makes a node with the site's own credentials, and leads it by these targets; mac: that of its port, empty: it has none. No agent cleans it on its way, and
// then it has the automated cleaning of Ironic's default.
func (s site) register(name, deployInterface, mac string, targets ...string) siteNode {
	s.Helper()
	var n siteNode
	body := fmt.Sprintf(`{"name": %q, "driver": "fake-hardware", "deploy_interface": %q, "automated_clean": false, "driver_info": {"redfish_address": "https://site.example", "redfish_username": "site"},
		"instance_info": {"image_source": "http://images.example/site.raw", "image_checksum": "a"}}`, name, deployInterface)
	if status := s.send(http.MethodPost, "/nodes", body, &n); status != http.StatusCreated {
		s.Fatalf("register the node %s: status %d", name, status)
	}
	if mac != "" {
		if status := s.send(http.MethodPost, "/ports", fmt.Sprintf(`{"node_uuid": %q, "address": %q}`, n.UUID, mac), nil); status != http.StatusCreated {
			s.Fatalf("register the port %s: status %d", mac, status)
		}
	}
	reached := map[string]string{"manage": "manageable", "provide": "available", "active": "active"}
	for _, target := range targets {
		s.send(http.MethodPut, "/nodes/"+n.UUID+"/states/provision", fmt.Sprintf(`{"target": %q}`, target), nil)
		s.await(n, reached[target])
	}
	if status := s.patch(n, "/automated_clean", "null"); status != http.StatusOK {
		s.Fatalf("the node %s has no automated cleaning: status %d", name, status)
	}
	return s.node(n.UUID)
}

// await waits until the node is in the state.
func (s site) await(n siteNode, state string) {
	s.Helper()
	for begun := time.Now(); s.node(n.UUID).State != state; time.Sleep(pollInterval) {
		if time.Since(begun) > patience {
			s.Fatalf("the node %s does not become %s: %+v", n.Name, state, s.node(n.UUID))
		}
	}
}

// expectUntouched checks that nobody has changed the state, the power or the record of the node since.
func (s site) expectUntouched(n siteNode) {
	s.Helper()
	if now := s.node(n.UUID); now.Changed != n.Changed || now.State != n.State || now.Power != n.Power || len(now.Extra) > 0 {
		s.Errorf("the node was touched: it was %+v and is %+v", n, now)
	}
}

// TestNodesThatASiteHasAlready runs all cases at once, on the nodes of one Ironic.
func TestNodesThatASiteHasAlready(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	running := server.Start(t, server.Options{})
	t.Run("cases", func(t *testing.T) {
		for name, test := range siteCases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(newFixture(t, ironic.Options{Endpoint: running.Endpoint, DeployInterface: "direct"}), site{t, running.Endpoint})
			})
		}
	})
}

var siteCases = map[string]func(*fixture, site){
	"a node that the login does not see is told, with commands that Ironic carries out": func(f *fixture, s site) {
		s.register("site-hidden", "direct", f.host.BootMAC, "manage")
		front := newRecorder(f.T, s.endpoint)
		front.change = func(response *http.Response) {
			if response.Request.Method == http.MethodGet && strings.HasPrefix(response.Request.URL.Path, "/v1/ports") {
				response.Body, response.ContentLength = io.NopCloser(strings.NewReader(`{"ports": []}`)), -1
				response.Header.Del("Content-Length")
			}
		}
		f.options.Endpoint = front.URL
		f.restart()
		var told error
		f.until("the hidden node is told", func() bool {
			told = f.inspect(attemptOf(1))
			return hardware.KindOf(told) == hardware.Conflict
		})
		ours := s.node(f.host.Namespace + "~" + f.host.Name)
		for _, want := range []string{f.host.BootMAC, "--owner", "baremetal node maintenance set " + ours.UUID, "baremetal node delete " + ours.UUID} {
			if !strings.Contains(told.Error(), want) {
				s.Errorf("%v does not say %q", told, want)
			}
		}
		if status := s.send(http.MethodPut, "/nodes/"+ours.UUID+"/maintenance", `{"reason": "wrong"}`, nil); status != http.StatusAccepted {
			s.Errorf("maintenance set: status %d", status)
		}
		if status := s.send(http.MethodDelete, "/nodes/"+ours.UUID, "", nil); status != http.StatusNoContent {
			s.Errorf("delete: status %d", status)
		}
	},
	"a node in enroll without a port is found by its UUID": func(f *fixture, s site) {
		n := s.register("site-enroll", "direct", "")
		f.host.InstallerNode = strings.ToUpper(n.UUID)
		expectLife(f, s, n)
	},
	"a manageable node is found by its name": func(f *fixture, s site) {
		n := s.register("site-manageable", "direct", f.host.BootMAC, "manage")
		f.host.InstallerNode = "site-manageable"
		expectLife(f, s, n)
	},
	"an available node is found by the boot MAC address": func(f *fixture, s site) {
		expectLife(f, s, s.register("site-available", "direct", f.host.BootMAC, "manage", "provide"))
	},
	"a node that has the name of the host's own keeps its credentials": func(f *fixture, s site) {
		n := s.register(f.host.Namespace+"~"+f.host.Name, "direct", f.host.BootMAC, "manage", "provide")
		expectLife(f, s, n)
	},
	"a node that somebody else has deployed is refused and untouched, however it is found": func(f *fixture, s site) {
		n := s.register("site-active", "fake", f.host.BootMAC, "manage", "provide", "active")
		for _, named := range []string{"", n.UUID, "site-active"} {
			f.host.InstallerNode = named
			expectRefusals(f, hardware.Conflict, "was not deployed by Ingot")
		}
		s.expectUntouched(n)
	},
	"a node that is another host's is refused": func(f *fixture, s site) {
		n := s.register("site-taken", "direct", "")
		f.host.InstallerNode = n.UUID
		f.repeat(func() error { return f.inspect(attemptOf(1)) }, func(seen hardware.Observation) bool { return seen.Attempt != nil })
		first := f.host
		f.host.UID, f.host.Name, f.host.BootMAC = "another", "another", ""
		f.restart()
		expectRefusals(f, hardware.Conflict, "is that of the host with the UID "+first.UID)
	},
	"a node that is named and does not exist is not found, and none is created": func(f *fixture, s site) {
		f.host.InstallerNode = "site-nowhere"
		expectRefusals(f, hardware.NotFound, `no node with the UUID or the name "site-nowhere"`)
		if seen := f.observe(); seen.Attempt != nil || seen.Power != hardware.PowerUnknown {
			f.Errorf("a host without a node: %+v", seen)
		}
		if status := s.send(http.MethodGet, "/nodes/"+f.host.Namespace+"~"+f.host.Name, "", nil); status != http.StatusNotFound {
			f.Errorf("a node of the host's name: status %d", status)
		}
	},
	"a boot MAC address of another node than the named one is refused": func(f *fixture, s site) {
		other := s.register("site-other", "direct", f.host.BootMAC, "manage")
		named := s.register("site-named", "direct", "", "manage")
		f.host.InstallerNode = "site-named"
		expectRefusals(f, hardware.Conflict, "is that of Ironic's node "+other.UUID)
		s.expectUntouched(other)
		s.expectUntouched(named)
	},
	"a named node with other ports than that of the boot MAC address is refused": func(f *fixture, s site) {
		n := s.register("site-strange", "direct", "52:54:00:ff:00:01", "manage")
		f.host.InstallerNode = "site-strange"
		expectRefusals(f, hardware.Conflict, "ports have the MAC addresses 52:54:00:ff:00:01")
		s.expectUntouched(n)
	},
	"a host without a boot MAC address gets a node of its own, and not the first that has a port": func(f *fixture, s site) {
		n := s.register("site-first", "direct", f.host.BootMAC, "manage")
		f.host.BootMAC = ""
		f.repeat(func() error { return f.inspect(attemptOf(1)) }, func(seen hardware.Observation) bool { return seen.Attempt != nil })
		s.expectUntouched(n)
		if own := s.node(f.host.Namespace + "~" + f.host.Name); own.DriverInfo["redfish_username"] != f.host.BMC.Username {
			f.Errorf("the node that was created has the driver_info %v", own.DriverInfo)
		}
	},
	"a host that names another node than its own is refused": func(f *fixture, s site) {
		f.repeat(func() error { return f.inspect(attemptOf(1)) }, func(seen hardware.Observation) bool { return seen.Attempt != nil })
		n := s.register("site-second", "direct", "", "manage")
		f.host.InstallerNode = "site-second"
		expectRefusals(f, hardware.Conflict, `names "site-second", and the host is Ironic's node`)
		if _, err := f.installer.Observe(f.Context(), f.host); hardware.ReasonOf(err) != hardware.ReasonInstallerConflict {
			f.Errorf("Observe says %v", err)
		}
		s.expectUntouched(n)
	},
	"the power of a found node is changed before any attempt": func(f *fixture, s site) {
		s.register("site-power", "direct", f.host.BootMAC, "manage")
		f.expectPower(hardware.PowerOn)
		f.expectPower(hardware.PowerOff)
	},
}

// expectLife installs, rolls, erases and installs again by an agent, and checks that the node is still the site's.
func expectLife(f *fixture, s site, before siteNode) {
	f.Helper()
	f.serveImage()
	server.StartAgent(f.T, f.options.Endpoint, f.host.BootMAC, server.AgentOptions{})
	f.expectSucceeded(1, f.install)
	f.expectSucceeded(2, f.eraseWith(hardware.EraseFull))
	f.restart()
	f.expectSucceeded(3, f.install)
	after := s.node(before.UUID)
	if after.Extra["ingot_host"] != f.host.UID || after.State != "active" {
		f.Errorf("the node that was installed: %+v", after)
	}
	if after.Name != before.Name || after.Driver != before.Driver || fmt.Sprint(after.DriverInfo) != fmt.Sprint(before.DriverInfo) {
		f.Errorf("the node of the site was %+v and is %+v", before, after)
	}
}

// expectRefusals checks that every kind of work and the power are refused, also when they are repeated.
func expectRefusals(f *fixture, kind hardware.Kind, says string) {
	f.Helper()
	calls := map[string]func() error{
		"Inspect": func() error { return f.inspect(attemptOf(1)) }, "Install": func() error { return f.install(attemptOf(1)) },
		"Erase": func() error { return f.eraseWith(hardware.EraseNone)(attemptOf(1)) }, "Cancel": func() error { return f.cancel(attemptOf(1)) },
		"SetPower": func() error {
			return f.installer.SetPower(f.Context(), f.host, hardware.PowerChange{Desired: hardware.PowerOff, Since: time.Now()})
		},
	}
	for range 2 {
		for name, call := range calls {
			if err := call(); hardware.KindOf(err) != kind || !strings.Contains(err.Error(), says) {
				f.Errorf("%s: expected %s with %q, seen %v", name, kind, says, err)
			}
		}
	}
}
