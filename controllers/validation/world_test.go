package validation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/cluster"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/require"
	"github.com/ingot-dev/ingot/test/tenantcalls"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// world is a real API server that is both the management and the tenant's cluster, with the samples applied.
type world struct {
	t      *testing.T
	c      client.Client
	r      *Reconciler
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	tenant types.NamespacedName
	// kubeconfig of the cluster's administrator.
	kubeconfig []byte
}

func start(t *testing.T) *world {
	t.Helper()
	if _, err := cluster.Program(); err != nil {
		require.Missing(t, "ingot-controlplane", err.Error())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c, err := cluster.Start(ctx, cluster.Options{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	config, err := c.RESTConfig()
	must(t, err)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		must(t, add(scheme))
	}
	ctrllog.SetLogger(logr.Discard())
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)), events: events.NewFakeRecorder(1000),
		tenant: types.NamespacedName{Namespace: "research", Name: "research"}}
	w.c, err = client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	apply(t, w.c, "../../config/crd/bases/*.yaml")
	w.eventually("the kinds to be served", func() error { return w.c.List(ctx, &v1alpha1.MachineList{}) })
	apply(t, w.c, "../../config/samples/*.yaml")
	apply(t, w.c, "../../config/samples/tenant/*.yaml")
	var calls tenantcalls.Recorder
	t.Cleanup(func() { calls.Check(t) })
	registry := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: scheme, WrapTransport: calls.Wrap})
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- registry.Start(running) }()
	t.Cleanup(func() { stop(); must(t, <-ended) })
	w.kubeconfig = c.Kubeconfig()
	must(t, registry.Set(ctx, w.tenant, w.kubeconfig))
	w.eventually("the tenant to answer", func() error { _, err := registry.For(w.tenant); return err })
	w.r = &Reconciler{Client: w.c, Tenants: registry, Recorder: w.events, Clock: w.clock}
	w.revision(ctx, "h100")
	w.revision(ctx, "h200-dra")
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// apply creates every object of the files, strictly: an unknown field is an error.
func apply(t *testing.T, c client.Client, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, part := range strings.Split("\n"+string(text), "\n---") {
			object := &unstructured.Unstructured{}
			must(t, yaml.Unmarshal([]byte(part), &object.Object))
			if len(object.Object) == 0 {
				continue
			}
			if err := client.WithFieldValidation(c, metav1.FieldValidationStrict).Create(context.Background(), object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
}

// revision makes the NodeTypeRevision and its NodeTypeRendering that the nodetype controller would make of a sample.
func (w *world) revision(ctx context.Context, name string) {
	w.t.Helper()
	var nodeType v1alpha1.NodeType
	must(w.t, w.c.Get(ctx, client.ObjectKey{Name: name}, &nodeType))
	var image v1alpha1.OSImage
	must(w.t, w.c.Get(ctx, client.ObjectKey{Name: nodeType.Spec.OSImageRef.Name}, &image))
	must(w.t, w.c.Create(ctx, &v1alpha1.NodeTypeRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-1"},
		Spec: v1alpha1.NodeTypeRevisionSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: name}, GPU: nodeType.Spec.GPU, HashVersion: 1,
			Image: v1alpha1.RevisionImage{Name: image.Name, Checksum: image.Spec.Checksum, Format: image.Spec.Format, UserData: v1alpha1.UserDataCloudInit},
		},
	}))
	plan, err := presentation.Resolve(spec.Request{GPU: nodeType.Spec.GPU, Image: image.Spec})
	must(w.t, err)
	must(w.t, w.c.Create(ctx, &v1alpha1.NodeTypeRendering{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-1-made"},
		Spec: v1alpha1.NodeTypeRenderingSpec{
			RevisionRef: v1alpha1.LocalReference{Name: name + "-1"}, Encoding: v1alpha1.RenderingEncoding, Plan: plan,
		},
	}))
}

// withSettings makes another revision of the sample h100, with these settings of kubelet, and has the Machine be installed with it.
func (m *machine) withSettings(kubelet string) {
	m.t.Helper()
	ctx := context.Background()
	var revision v1alpha1.NodeTypeRevision
	must(m.t, m.w.c.Get(ctx, client.ObjectKey{Name: "h100-1"}, &revision))
	var made v1alpha1.NodeTypeRendering
	must(m.t, m.w.c.Get(ctx, client.ObjectKey{Name: "h100-1-made"}, &made))
	revision.ObjectMeta, made.ObjectMeta = metav1.ObjectMeta{Name: "h100-settings"}, metav1.ObjectMeta{Name: "h100-settings-made"}
	revision.Spec.Kubelet, made.Spec.RevisionRef.Name = &runtime.RawExtension{Raw: []byte(kubelet)}, revision.Name
	must(m.t, errors.Join(m.w.c.Create(ctx, &revision), m.w.c.Create(ctx, &made)))
	installed := m.get()
	installed.Status.Revision, installed.Status.Rendering = revision.Name, made.Name
	must(m.t, m.w.c.Status().Update(ctx, installed))
}

func (w *world) eventually(what string, try func() error) {
	w.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("waited a minute for %s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// machine is a Machine and the node that it became.
type machine struct {
	w      *world
	t      *testing.T
	name   string
	tenant types.NamespacedName
	shape  v1alpha1.NodeTypeSpec
}

// join makes a Machine of the sample h100 in Validating and its Node as kubelet registers it, gated or not.
func (w *world) join(t *testing.T, name string, gated bool) *machine {
	t.Helper()
	m := w.register(t, name, "h100", w.tenant, gated)
	m.report("boot-1", "8")
	return m
}

func (w *world) register(t *testing.T, name, nodeType string, tenant types.NamespacedName, gated bool) *machine {
	t.Helper()
	ctx := context.Background()
	out := &machine{w: w, t: t, name: name, tenant: tenant}
	var kind v1alpha1.NodeType
	must(t, w.c.Get(ctx, client.ObjectKey{Name: nodeType}, &kind))
	out.shape = kind.Spec
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Namespace, Name: name},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, TenantClusterRef: v1alpha1.LocalReference{Name: tenant.Name}},
	}
	must(t, w.c.Create(ctx, m))
	m.Status = v1alpha1.MachineStatus{Phase: v1alpha1.MachineValidating, Revision: nodeType + "-1", Rendering: nodeType + "-1-made", Attempt: 1, SystemUUID: "4c4c4544-0042-3010-8053-b8c04f334432"}
	must(t, w.c.Status().Update(ctx, m))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelNodeType: nodeType}}, Spec: corev1.NodeSpec{ProviderID: v1alpha1.ProviderID(m.UID, 1)}}
	if gated {
		node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.DefaultGateTaintKey, Effect: corev1.TaintEffectNoSchedule}}
	}
	must(t, w.c.Create(ctx, node))
	return out
}

// report is kubelet's status of that boot with so many GPUs of a device plugin; none: no plugin ever registered.
func (m *machine) report(boot, gpus string) {
	m.t.Helper()
	m.w.eventually("the node's status to be written", func() error {
		node := m.node()
		node.Status.Capacity, node.Status.Allocatable = corev1.ResourceList{}, corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			node.Status.Capacity[name], node.Status.Allocatable[name] = m.shape.Resources[name], m.shape.Resources[name]
		}
		if gpus != "" {
			node.Status.Capacity[gpu], node.Status.Allocatable[gpu] = resource.MustParse(gpus), resource.MustParse(gpus)
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
		node.Status.NodeInfo = corev1.NodeSystemInfo{BootID: boot, SystemUUID: "4C4C4544-0042-3010-8053-B8C04F334432", KernelVersion: "6.12.107+deb13-amd64", KubeletVersion: "v1.37.0"}
		return m.w.c.Status().Update(context.Background(), node)
	})
}

func (m *machine) node() *corev1.Node {
	m.t.Helper()
	var n corev1.Node
	must(m.t, m.w.c.Get(context.Background(), client.ObjectKey{Name: m.name}, &n))
	return &n
}

func (m *machine) get() *v1alpha1.Machine {
	m.t.Helper()
	var out v1alpha1.Machine
	must(m.t, m.w.c.Get(context.Background(), client.ObjectKey{Namespace: m.tenant.Namespace, Name: m.name}, &out))
	return &out
}

// reconcile judges until nothing changes any more; the clock stands still meanwhile.
func (m *machine) reconcile() {
	m.t.Helper()
	ctx := ctrllog.IntoContext(context.Background(), testr.New(m.t))
	for range 50 {
		m.w.eventually("the tenant's cache to follow", func() error { return m.cached(ctx) })
		before := m.get().ResourceVersion + m.node().ResourceVersion
		if _, err := m.w.r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: m.tenant.Namespace, Name: m.name}}); err != nil {
			m.t.Fatal(err)
		}
		if m.get().ResourceVersion+m.node().ResourceVersion == before {
			return
		}
	}
	m.t.Fatal("reconciling does not come to rest")
}

func (m *machine) cached(ctx context.Context) error {
	access, err := m.w.r.Tenants.For(m.tenant)
	if err != nil {
		return err
	}
	var n corev1.Node
	if err := access.Cache.Get(ctx, client.ObjectKey{Name: m.name}, &n); err != nil {
		return err
	}
	if now := m.node(); n.ResourceVersion != now.ResourceVersion {
		return fmt.Errorf("the cache has version %s, the API server %s", n.ResourceVersion, now.ResourceVersion)
	}
	return m.slicesCached(ctx, access)
}

func (m *machine) slicesCached(ctx context.Context, access *tenantaccess.Access) error {
	cached, err := access.SlicesOf(ctx, m.name)
	if err != nil || !access.SlicesServed {
		return err
	}
	var all resourcev1.ResourceSliceList
	if err := m.w.c.List(ctx, &all, client.MatchingFields{resourcev1.ResourceSliceSelectorNodeName: m.name}); err != nil {
		return err
	}
	if seen, there := versions(cached), versions(all.Items); !slices.Equal(seen, there) {
		return fmt.Errorf("the cache has the slices %v, the API server %v", seen, there)
	}
	return nil
}

func versions(all []resourcev1.ResourceSlice) []string {
	var out []string
	for i := range all {
		out = append(out, all[i].Name+" "+all[i].ResourceVersion)
	}
	slices.Sort(out)
	return out
}

func (m *machine) after(d time.Duration) {
	m.w.clock.SetTime(m.w.clock.Now().Add(d))
	m.reconcile()
}

func (m *machine) gated() bool {
	return slices.ContainsFunc(m.node().Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.DefaultGateTaintKey })
}

// expect compares gate, admission and the condition's reason.
func (m *machine) expect(when string, gated, admitted bool, reason string) {
	m.t.Helper()
	got := m.get()
	condition := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionValidated)
	if condition == nil || got.Status.Verdict == nil {
		m.t.Fatalf("%s: there is no verdict: %+v", when, got.Status)
	}
	if onGate := m.gated(); onGate != gated || got.Status.Verdict.Admitted != admitted || condition.Reason != reason {
		m.t.Errorf("%s: gate %v, admitted %v, %s (%s); want %v, %v, %s", when, m.gated(), got.Status.Verdict.Admitted, condition.Reason, condition.Message, gated, admitted, reason)
	}
	if (condition.Status == metav1.ConditionTrue) != admitted {
		m.t.Errorf("%s: Validated is %s", when, condition.Status)
	}
}

func (w *world) heard(reason string) bool {
	for {
		select {
		case e := <-w.events.Events:
			if strings.Contains(e, reason) {
				return true
			}
		default:
			return false
		}
	}
}

// says compares what the Node says about its gate: the taint's value and the annotation; empty: nothing.
func (m *machine) says(when, reason, text string) {
	m.t.Helper()
	node := m.node()
	i := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.DefaultGateTaintKey })
	if said := node.Annotations[v1alpha1.AnnotationGate]; i < 0 || node.Spec.Taints[i].Value != reason || !strings.Contains(said, text) ||
		reason != "" && !strings.HasSuffix(said, "kubectl ingot why -n "+m.tenant.Namespace+" "+m.name+" there") {
		m.t.Errorf("%s: taints %v, annotation %q", when, node.Spec.Taints, said)
	}
}

// told returns the reasons of the events on the Node, in order of the alphabet.
func (m *machine) told() []string {
	m.t.Helper()
	var events corev1.EventList
	must(m.t, m.w.c.List(context.Background(), &events, client.InNamespace(metav1.NamespaceDefault)))
	var reasons []string
	for i := range events.Items {
		if e := &events.Items[i]; e.InvolvedObject.Kind == "Node" && e.InvolvedObject.UID == m.node().UID {
			reasons = append(reasons, e.Reason)
		}
	}
	slices.Sort(reasons)
	return reasons
}
