package host_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	ironicserver "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// ironicServer is a server that only a node of Ironic stands for, with the number of its MAC address. Its BMC has an address of nobody, unless it has its own.
type ironicServer struct {
	name    string
	number  int
	address string
}

// newIronicServer returns a server that no other test has.
func newIronicServer(name string) ironicServer {
	return ironicServer{name: name, number: int(ironicNumber.Add(1))}
}

// ironicNumber is the number of the last ironicServer: no two hosts are one server.
var ironicNumber atomic.Int64

// Name implements named.
func (s ironicServer) Name() string { return s.name }

func (s ironicServer) bootMAC() string {
	return fmt.Sprintf("52:54:00:01:%02x:%02x", s.number>>8, s.number&0xff)
}

// newIronicRig makes a rig whose NodeProvider is that Ironic.
func newIronicRig(t *testing.T, running *ironicserver.Server, deployInterface string, deploys int32) *rig {
	t.Helper()
	return newRigWith(t, 1, 0, func(r *rig) {
		r.ironic = &v1alpha1.IronicProvider{
			Endpoint: running.Endpoint, HardwareType: "fake-hardware", DeployInterface: deployInterface, Limits: v1alpha1.IronicLimits{Deploys: deploys},
		}
	})
}

// registerIronic creates the BareMetalHost and its Secret.
func (r *rig) registerIronic(s ironicServer, changes ...func(*metal3.BareMetalHost)) {
	r.t.Helper()
	host := r.ironicHost(s)
	for _, change := range changes {
		change(host)
	}
	server.Create(r.t,
		&corev1.Secret{ObjectMeta: r.meta(s.name + "-bmc"), StringData: map[string]string{"username": "root", "password": "bmc-password"}},
		host)
}

// ironicHost returns the BareMetalHost.
func (r *rig) ironicHost(s ironicServer) *metal3.BareMetalHost {
	return &metal3.BareMetalHost{ObjectMeta: r.meta(s.name), Spec: metal3.BareMetalHostSpec{
		BootMACAddress: s.bootMAC(),
		BMC:            metal3.BMCDetails{Address: cmp.Or(s.address, fmt.Sprintf("ipmi://192.0.2.%d", s.number)), CredentialsName: s.name + "-bmc"},
	}}
}

func TestAHostGoesThroughItsLifeByIronic(t *testing.T) {
	running := ironicserver.Start(t, ironicserver.Options{})
	r := newIronicRig(t, running, "direct", 250)
	s := newIronicServer("node-1")
	agent := ironicserver.StartAgent(t, running.Endpoint, s.bootMAC(), ironicserver.AgentOptions{})
	r.registerIronic(s)
	_, inspected := r.await(s, "it is available", inState(metal3.StateAvailable))
	if w := inspected.Status.Wanted; w.Operation != string(hardware.OpInspect) || w.Deadline.Sub(w.Since.Time) < r.timeouts.InspectAgent {
		t.Errorf("Ironic may boot its agent to inspect, and the attempt is %+v", w)
	}
	running.StoreInventory(r.namespace+"~"+s.name, `{"system_vendor": {"serial_number": "SN1"}, "disks": [{"name": "/dev/sda", "serial": "S1", "size": 1000}]}`,
		`{"pci_devices": [{"vendor_id": "10de", "product_id": "2330", "class": "030200", "bus": "0000:1b:00.0"}]}`)
	r.edit(s, func(h *metal3.BareMetalHost) {
		h.Annotations = map[string]string{metal3.InspectAnnotationPrefix: "", v1alpha1.AnnotationIronicNode: r.namespace + "~" + s.name}
		h.Spec.RootDeviceHints = &metal3.RootDeviceHints{HCTL: "0:0:0:0"} // which Ingot's own agent does not follow
	})
	r.await(s, "its inventory is that of Ironic", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		i := record.Status.Inventory
		return i != nil && i.SerialNumber == "SN1" && len(i.Disks) == 1 && len(i.NICs) == 1 && i.NICs[0].MAC == s.bootMAC() && len(i.GPUs) == 1 && i.GPUSource == v1alpha1.SourceAgent
	})
	r.await(s, "it is available", inState(metal3.StateAvailable))

	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	_, record := r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	if i := record.Status.Installed; i == nil || i.MachineUID != "m1" || i.Checksum != r.image.Checksum {
		t.Errorf("installed = %+v", i)
	}
	if record.Status.Attempt != nil || record.Status.Wanted.ConfigDriveAwaitedAt == nil {
		t.Errorf("attempt %+v, wanted %+v: Ironic has the progress", record.Status.Attempt, record.Status.Wanted)
	}
	if steps, drive := agent.Done(); len(steps) != 1 || steps[0] != "write_image" || drive == "" {
		t.Errorf("the agent did %v with a config drive of %d characters", steps, len(drive))
	}

	generation := r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false }).Generation
	r.await(s, "the power-off is confirmed", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		p := record.Status.Power
		return p.State == string(hardware.PowerOff) && p.ObservedGeneration >= generation
	})
	r.unassignNamed(s)
	_, record = r.await(s, "it is back in the pool", inState(metal3.StateAvailable))
	if e := record.Status.Erased; e == nil || e.Mode != v1alpha1.EraseMetadata || record.Status.Installed != nil {
		t.Errorf("erased %+v, installed %+v", e, record.Status.Installed)
	}
	if steps, _ := agent.Done(); strings.Join(steps, " ") != "write_image erase_devices_metadata" {
		t.Errorf("the agent did %v", steps)
	}
}

// TestAHostWhoseBMCIronicAloneKnowsLivesItsLife has a node that the site has registered, and nothing of its BMC in the management cluster.
func TestAHostWhoseBMCIronicAloneKnowsLivesItsLife(t *testing.T) {
	require.Deep(t)
	running := ironicserver.Start(t, ironicserver.Options{})
	r := newIronicRig(t, running, "direct", 250)
	s := newIronicServer("node-1")
	site := registerSiteNode(t, running.Endpoint, s)
	host := r.ironicHost(s)
	host.Annotations, host.Spec.BMC = map[string]string{v1alpha1.AnnotationIronicNode: site}, metal3.BMCDetails{}
	server.Create(t, host)
	agent := ironicserver.StartAgent(t, running.Endpoint, s.bootMAC(), ironicserver.AgentOptions{})
	r.await(s, "it is available", inState(metal3.StateAvailable))
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	if steps, _ := agent.Done(); len(steps) != 1 || steps[0] != "write_image" {
		t.Errorf("the agent did %v", steps)
	}
	r.edit(s, func(h *metal3.BareMetalHost) { delete(h.Annotations, v1alpha1.AnnotationIronicNode) })
	r.await(s, "it has no node and no BMC", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		e := record.Status.Error
		return e != nil && e.Reason == v1alpha1.ReasonBMCAddressInvalid
	})
}

// registerSiteNode registers a node of Ironic with the site's own credentials, and returns its name.
func registerSiteNode(t *testing.T, endpoint string, s ironicServer) string {
	t.Helper()
	post := func(path, body string, into any) {
		t.Helper()
		status, answer, err := ironicserver.Ask(t.Context(), endpoint, http.MethodPost, "/v1"+path, body)
		if err != nil || status != http.StatusCreated || json.Unmarshal(answer, into) != nil {
			t.Fatalf("%s: %d, %v: %s", path, status, err, answer)
		}
	}
	name := "site-" + s.name
	var node struct{ UUID string }
	post("/nodes", fmt.Sprintf(`{"name": %q, "driver": "fake-hardware", "deploy_interface": "direct", "driver_info": {"site": "own"}}`, name), &node)
	post("/ports", fmt.Sprintf(`{"node_uuid": %q, "address": %q}`, node.UUID, s.bootMAC()), &struct{}{})
	return name
}

func TestAHostThatNamesANodeWhichIronicLacksSaysSo(t *testing.T) {
	require.Deep(t)
	running := ironicserver.Start(t, ironicserver.Options{})
	r := newIronicRig(t, running, "fake", 250)
	s := ironicServer{name: "node-1", number: int(ironicNumber.Add(1))}
	r.registerIronic(s, func(h *metal3.BareMetalHost) {
		h.Annotations = map[string]string{v1alpha1.AnnotationIronicNode: "rack-a-01"}
	})
	r.await(s, "the node is missing", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		e := record.Status.Error
		return e != nil && e.Reason == string(hardware.ReasonInstallerNotFound) && strings.Contains(e.Message, `"rack-a-01"`) && strings.Contains(e.Message, v1alpha1.AnnotationIronicNode)
	})
	r.edit(s, func(h *metal3.BareMetalHost) { delete(h.Annotations, v1alpha1.AnnotationIronicNode) })
	r.await(s, "it is available", inState(metal3.StateAvailable))
}

// claimedIronic registers servers, each with an agent that does not start, and claims them one after the other.
func (r *rig) claimedIronic(running *ironicserver.Server, count int, begun func(ironicServer)) (servers []ironicServer, agents []*ironicserver.Agent) {
	r.t.Helper()
	for i := range count {
		s := newIronicServer(fmt.Sprintf("node-%d", i+1))
		servers = append(servers, s)
		agents = append(agents, ironicserver.StartAgent(r.t, running.Endpoint, s.bootMAC(), ironicserver.AgentOptions{Absent: true}))
		r.registerIronic(s)
	}
	for i, s := range servers {
		r.await(s, "it is available", inState(metal3.StateAvailable))
		r.claim(s, fmt.Sprintf("m%d", i+1), 1, v1alpha1.EraseMetadata)
		begun(s)
	}
	return servers, agents
}

func placeOf(record *v1alpha1.HostRecord) int {
	if record.Status.Queue == nil {
		return 0
	}
	return int(record.Status.Queue.Place)
}

func TestHostsWaitForTheirTurnAtIronicAndKeepTheirPlaceOverARestart(t *testing.T) {
	require.Deep(t)
	running := ironicserver.Start(t, ironicserver.Options{MaxDeploys: 1})
	r := newIronicRig(t, running, "direct", 1)
	isWaiting := func(place int) func(*metal3.BareMetalHost, *v1alpha1.HostRecord) bool {
		return func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool { return placeOf(record) == place }
	}
	began := 0
	servers, agents := r.claimedIronic(running, 3, func(s ironicServer) {
		if began == 0 {
			r.await(s, "it begins", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
				w := record.Status.Wanted
				return w.IsOpen() && w.Operation == string(hardware.OpInstall)
			})
		} else {
			r.await(s, "it waits", isWaiting(began))
		}
		began++
	})
	_, before := r.await(servers[2], "it is the second in the queue", isWaiting(2))
	r.stop()
	r.start()
	time.Sleep(2 * quick().IdleInterval) // every host is looked at again
	_, after := r.await(servers[2], "it is the second in the queue", isWaiting(2))
	if !after.Status.Queue.Since.Equal(&before.Status.Queue.Since) {
		t.Errorf("it waits since %s, and waited since %s before the restart", after.Status.Queue.Since, before.Status.Queue.Since)
	}
	// The next leader's cache shows no attempt of the one before.
	r.stop()
	r.hasNoRecords = true
	r.start()
	time.Sleep(5 * quick().IdleInterval)
	for _, s := range servers[1:] {
		if _, record, err := r.get(s); err != nil || placeOf(record) == 0 && record.Status.Wanted.IsOpen() {
			t.Errorf("%s has begun above the limit: %+v, %v", s.name, record.Status.Wanted, err)
		}
	}
	r.stop()
	r.hasNoRecords = false
	r.start()
	for i, s := range servers {
		agents[i].Set(ironicserver.AgentOptions{})
		_, record := r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
		if record.Status.Queue != nil || record.Status.Failures > 0 {
			t.Errorf("%s: queue %+v, %d failures", s.name, record.Status.Queue, record.Status.Failures)
		}
	}
}

func TestWhatIronicRefusesBecauseOfItsOwnLimitIsNoFailure(t *testing.T) {
	require.Deep(t)
	running := ironicserver.Start(t, ironicserver.Options{MaxDeploys: 1})
	r := newIronicRig(t, running, "direct", 250) // Ironic allows fewer than the NodeProvider says
	restart := func(install time.Duration) {
		r.stop()
		r.timeouts.Install = install
		r.start()
	}
	var first bool
	servers, agents := r.claimedIronic(running, 2, func(s ironicServer) {
		if !first {
			first = true
			r.await(s, "Ironic works on it", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool { return record.Status.Wanted.IsOpen() })
			eventually(t, "its node waits for the agent", func() bool { return strings.Contains(nodeStates(t, running), "wait call-back") })
			restart(8 * time.Second) // for the second one
		}
	})
	var deadline metav1.MicroTime
	isPostponed := func(by time.Duration) func(*metal3.BareMetalHost, *v1alpha1.HostRecord) bool {
		return func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
			w := record.Status.Wanted
			if record.Status.Failures > 0 || record.Status.Error != nil || h.Status.ErrorType != "" {
				t.Fatalf("%d failures, error %+v", record.Status.Failures, record.Status.Error)
			}
			if w.Operation != string(hardware.OpInstall) {
				return false
			}
			if deadline.IsZero() {
				deadline = w.Deadline
			}
			return w.Deadline.After(deadline.Add(by))
		}
	}
	r.await(servers[1], "its deadline is postponed", isPostponed(0))
	restart(10 * time.Minute)
	r.await(servers[1], "its deadline is postponed for long", isPostponed(5*time.Minute))
	for i, s := range servers {
		agents[i].Set(ironicserver.AgentOptions{})
		_, record := r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
		if record.Status.Failures > 0 {
			t.Errorf("%d failures", record.Status.Failures)
		}
	}
}

// nodeStates returns the list of Ironic's nodes as it is answered.
func nodeStates(t *testing.T, running *ironicserver.Server) string {
	t.Helper()
	return fetch(t, http.MethodGet, running.Endpoint+"/v1/nodes", http.StatusOK)
}
