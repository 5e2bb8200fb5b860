package machine_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	"github.com/ingot-dev/ingot/controllers/machine"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/nodequota"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/readyourwrites"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
	"github.com/ingot-dev/ingot/test/tenantcalls"
)

var server *management.Server

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(management.Main(m, &server))
}

// rig is one namespace for teams, tenants and hosts alike. The tenant's cluster is the management cluster itself.
type rig struct {
	t         *testing.T
	namespace string
	tenant    types.NamespacedName
	writes    writes
	// log of the manager; zero: none.
	log logr.Logger
	// neighbour is another namespace that the manager of this one serves too; nil: none.
	neighbour *rig
	// direct is as whom the controller reads past its cache; nil: as the manager.
	direct *rest.Config
	// tenantWrap changes what the tenant's API server answers; nil: nothing.
	tenantWrap func(http.RoundTripper) http.RoundTripper
	// tenantProbes is the time between two probes of the tenant's API server; 0: as by default.
	tenantProbes time.Duration
	// frozen are objects as the controller's cache shows them for ever, by kind; looks counts how often it did.
	frozen     sync.Map
	looks      atomic.Int32
	controller *machine.Reconciler
	// stop ends the manager that was started last.
	stop func()
}

func newRig(t *testing.T, hosts int) *rig {
	t.Helper()
	r := &rig{t: t, namespace: server.Namespace(t)}
	r.tenant = types.NamespacedName{Namespace: r.namespace, Name: "research"}
	r.addRevision(1, "1.37.0")
	server.Create(t,
		&v1alpha1.NodeProvider{ObjectMeta: r.global(), Spec: v1alpha1.NodeProviderSpec{
			HostNamespace: r.namespace, Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "127.0.0.1"}},
		}},
		&v1alpha1.NodeType{ObjectMeta: r.global(), Spec: v1alpha1.NodeTypeSpec{
			ProviderRef: v1alpha1.LocalReference{Name: r.namespace}, OSImageRef: v1alpha1.LocalReference{Name: r.namespace + "-1"},
			HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"rack": r.namespace}},
			Node:         &v1alpha1.NodeMetadata{Labels: map[string]string{"team": "research"}, Taints: []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}},
		}, Status: v1alpha1.NodeTypeStatus{StableRevision: r.namespace + "-1", StableRendering: r.namespace + "-1-made", TargetRevision: r.namespace + "-1", TargetRendering: r.namespace + "-1-made", Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, LastTransitionTime: metav1.Now(),
		}}}},
		&v1alpha1.TenantCluster{ObjectMeta: r.meta("research"), Spec: v1alpha1.TenantClusterSpec{
			KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}},
		}},
	)
	for i := range hosts {
		r.addHost(fmt.Sprintf("server-%02d", i))
	}
	return r
}

func (r *rig) global() metav1.ObjectMeta { return metav1.ObjectMeta{Name: r.namespace} }
func (r *rig) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.namespace, Name: name}
}
func (r *rig) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: r.namespace, Name: name}
}

func (r *rig) addHost(name string) {
	r.t.Helper()
	meta := r.meta(name)
	meta.Labels = map[string]string{"rack": r.namespace}
	h := &metal3.BareMetalHost{ObjectMeta: meta, Spec: metal3.BareMetalHostSpec{BootMACAddress: "52:54:00:00:00:01"}}
	h.Status.OperationalStatus = metal3.OperationalStatusOK
	h.Status.Provisioning.State = metal3.StateAvailable
	server.Create(r.t, h, &v1alpha1.HostRecord{ObjectMeta: r.meta(name), Status: v1alpha1.HostRecordStatus{
		Power:     &v1alpha1.HostPower{State: "Off", ObservedGeneration: 1, ObservedAt: metav1.NowMicro()},
		Inventory: &v1alpha1.HostInventory{SystemUUID: "dmi-" + name},
	}})
}

// addRevision makes the NodeType's n-th revision, with an image of its own, and its rendering.
func (r *rig) addRevision(n int, kubelet string, changes ...func(*v1alpha1.OSImage, *v1alpha1.NodeTypeRevision)) string {
	r.t.Helper()
	digest, name := "sha256:"+strings.Repeat(fmt.Sprintf("%02x", n), 32), fmt.Sprintf("%s-%d", r.namespace, n)
	image, revision :=
		&v1alpha1.OSImage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.OSImageSpec{
			URL: fmt.Sprintf("http://127.0.0.1/image-%d.raw.zst", n), Checksum: digest, Format: v1alpha1.FormatRawZstd, UserData: v1alpha1.UserDataCloudInit,
			OS: v1alpha1.OSImageOS{ID: "debian", Version: "13"}, Software: v1alpha1.OSImageSoftware{Kubelet: kubelet},
		}},
		&v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeTypeRevisionSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: r.namespace}, HashVersion: 1,
			Properties: []map[string]string{
				{"message": "of the hall"}, {"ingot.dev/user-data-template": "#cloud-config\nfinal_message: {{ .Values.NodeClaim.Name }} {{ .Values.Properties.message }}\n"},
			},
			Image: v1alpha1.RevisionImage{Name: name, Checksum: digest, Format: v1alpha1.FormatRawZstd, UserData: v1alpha1.UserDataCloudInit},
		}}
	for _, change := range changes {
		change(image, revision)
	}
	plan, err := presentation.Resolve(spec.Request{GPU: revision.Spec.GPU, Image: image.Spec})
	if err != nil {
		r.t.Fatal(err)
	}
	server.Create(r.t, image, revision, &v1alpha1.NodeTypeRendering{ObjectMeta: metav1.ObjectMeta{Name: name + "-made"}, Spec: v1alpha1.NodeTypeRenderingSpec{
		RevisionRef: v1alpha1.LocalReference{Name: name}, Encoding: v1alpha1.RenderingEncoding, Plan: plan,
	}})
	return name
}

func (r *rig) addMachine(name string) {
	r.t.Helper()
	server.Create(r.t, &v1alpha1.Machine{ObjectMeta: r.meta(name), Spec: v1alpha1.MachineSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: r.namespace}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"},
	}})
}

// writes counts mutating requests that were let through, but for events.
type writes struct {
	mu    sync.Mutex
	count int
	paths []string
	// delay of a request; nil: none.
	delay func(path string) time.Duration
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(q *http.Request) (*http.Response, error) {
		if q.Method != http.MethodGet && !strings.Contains(q.URL.Path, "/events") {
			w.mu.Lock()
			w.count++
			w.paths = append(w.paths, q.Method+" "+q.URL.Path)
			w.mu.Unlock()
			if w.delay != nil {
				time.Sleep(w.delay(q.URL.Path))
			}
		}
		return next.RoundTrip(q)
	})
}

func (w *writes) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// start runs a manager with the controller until stop is called, or the test ends.
func (r *rig) start() {
	t := r.t
	t.Helper()
	skip := true
	limited := rest.CopyConfig(server.Config)
	limited.Wrap(r.writes.wrap)
	served := []types.NamespacedName{r.tenant}
	if r.neighbour != nil {
		served = append(served, r.neighbour.tenant)
	}
	namespaces := map[string]cache.Config{}
	for _, tenant := range served {
		namespaces[tenant.Namespace] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(limited, ctrl.Options{
		Scheme: server.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		Cache: cache.Options{DefaultNamespaces: namespaces}, Logger: r.log, NewClient: readyourwrites.NewClient,
	})
	if err != nil {
		t.Fatal(err)
	}
	var calls tenantcalls.Recorder
	t.Cleanup(func() { calls.Check(t) })
	wrap := calls.Wrap
	if r.tenantWrap != nil {
		wrap = func(next http.RoundTripper) http.RoundTripper { return calls.Wrap(r.tenantWrap(next)) }
	}
	tenants := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Log: logr.Discard(), QPS: 200, Burst: 400, WrapTransport: wrap, ProbeInterval: r.tenantProbes})
	if err := mgr.Add(tenants); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range served {
		if err := tenants.Set(t.Context(), tenant, server.Cluster.Kubeconfig()); err != nil {
			t.Fatal(err)
		}
	}
	direct := mgr.GetAPIReader()
	if r.direct != nil {
		if direct, err = client.New(r.direct, client.Options{Scheme: server.Scheme}); err != nil {
			t.Fatal(err)
		}
	}
	r.controller = &machine.Reconciler{
		Client: behind{mgr.GetClient(), r}, APIReader: direct, Tenants: tenants, Claims: &machine.ClaimCache{}, Recorder: mgr.GetEventRecorder("ingot"),
		Clock: clock.RealClock{}, Random: rand.Reader, Timeouts: lifecycle.DefaultTimeouts(),
	}
	if err := hostindex.Add(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	quotas := &nodequota.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("ingot"), Clock: clock.RealClock{}}
	for _, controller := range []interface{ SetupWithManager(ctrl.Manager) error }{r.controller, quotas} {
		if err := controller.SetupWithManager(mgr); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
	r.stop = stop
	t.Cleanup(stop)
}

func (r *rig) machine(name string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	if err := client.IgnoreNotFound(server.Client.Get(r.t.Context(), r.key(name), m)); err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *rig) host(name string) (*metal3.BareMetalHost, *v1alpha1.HostRecord) {
	r.t.Helper()
	h, record := &metal3.BareMetalHost{}, &v1alpha1.HostRecord{}
	if err := server.Client.Get(r.t.Context(), r.key(name), h); err != nil {
		r.t.Fatal(err)
	}
	if err := server.Client.Get(r.t.Context(), r.key(name), record); err != nil {
		r.t.Fatal(err)
	}
	return h, record
}

// play is the host's side: it goes one state further when the spec asks for it. Where that is an installation, its agent asks for its
// documents, waits until they are written, and begins to write the image.
func (r *rig) play(name string) {
	r.t.Helper()
	h, record := r.host(name)
	now := metav1.NowMicro()
	before, beforeRecord := h.DeepCopy(), record.DeepCopy()
	power := "Off"
	if h.Spec.Online && h.Spec.Image != nil {
		power = "On"
	}
	record.Status.Power = &v1alpha1.HostPower{State: power, ObservedGeneration: h.Generation, ObservedAt: now}
	h.Status.PoweredOn = power == "On"
	installed, attempt := record.Status.Installed, record.Status.Wanted
	wanted := h.Spec.Image != nil && h.Spec.Online && record.Spec.Machine != nil
	isBegun := false
	switch state := &h.Status.Provisioning.State; {
	case wanted && (*state == metal3.StateAvailable || *state == metal3.StateProvisioned && installed.Attempt != record.Spec.Attempt ||
		*state == metal3.StateProvisioning && attempt.MachineAttempt != record.Spec.Attempt):
		*state = metal3.StateProvisioning
		record.Status.LastTenant, record.Status.LastTenantClusterUID = record.Spec.Tenant, record.Spec.TenantClusterUID
		record.Status.Erased, record.Status.Installed = nil, nil
		record.Status.Wanted = &v1alpha1.WantedAttempt{
			Number: record.Spec.Attempt, Operation: "Install", Since: now, Deadline: metav1.NewMicroTime(now.Add(time.Hour)),
			MachineUID: record.Spec.Machine.UID, MachineAttempt: record.Spec.Attempt,
		}
		record.Status.Attempt = &v1alpha1.HostAttempt{Number: record.Spec.Attempt, State: "Running", Step: "Registered", ConfigDriveAwaitedAt: &now}
		isBegun = true
	case *state == metal3.StateProvisioning && !h.Spec.Online:
		attempt.Outcome, attempt.Reason = v1alpha1.AttemptFailed, "Cancelled"
	case *state == metal3.StateProvisioning:
		*state = metal3.StateProvisioned
		h.Status.Provisioning.Image = *h.Spec.Image
		attempt.Outcome = v1alpha1.AttemptSucceeded
		record.Status.Installed = &v1alpha1.HostInstalled{
			MachineUID: record.Spec.Machine.UID, Attempt: record.Spec.Attempt, Checksum: record.Spec.Image.Checksum, At: now,
		}
	case *state == metal3.StateProvisioned && h.Spec.Image == nil:
		*state = metal3.StateDeprovisioning
	case *state == metal3.StateDeprovisioning:
		*state = metal3.StateAvailable
		record.Status.Installed = nil
		record.Status.Erased = &v1alpha1.EraseProof{Mode: v1alpha1.EraseMetadata, Attempt: 2, At: now}
		attempt.Operation = "Erase"
	}
	if err := server.Client.Status().Patch(r.t.Context(), record, client.MergeFrom(beforeRecord)); err != nil {
		r.t.Fatal(err)
	}
	if err := server.Client.Status().Patch(r.t.Context(), h, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
	if isBegun && r.controller != nil { // without a controller nobody writes them
		r.awaitDocuments(name)
	}
}

// awaitDocuments waits until the documents of the installation under way are written, and begins to write the image.
func (r *rig) awaitDocuments(name string) {
	r.t.Helper()
	_, record := r.host(name)
	management.Eventually(r.t, "the agent's documents are written", func() bool {
		claim := &corev1.Secret{}
		err := server.Client.Get(r.t.Context(), r.key(name+"-claim"), claim)
		return err == nil && documents.ClaimOf(claim).HostAttempt == record.Status.Wanted.Number && documents.ClaimOf(claim).TokenID != ""
	})
	before := record.DeepCopy()
	record.Status.Attempt.Step, record.Status.Attempt.DoneBytes, record.Status.Attempt.TotalBytes = "Writing", 400, 800
	if err := server.Client.Status().Patch(r.t.Context(), record, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}
