package validation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	"github.com/ingot-dev/ingot/test/cluster"
	"github.com/ingot-dev/ingot/test/require"
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
	registry := tenantaccess.New(tenantaccess.Options{Scheme: scheme})
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- registry.Start(running) }()
	t.Cleanup(func() { stop(); must(t, <-ended) })
	must(t, registry.Set(ctx, w.tenant, c.Kubeconfig()))
	w.eventually("the tenant to answer", func() error { _, err := registry.For(w.tenant); return err })
	w.r = &Reconciler{Client: w.c, Tenants: registry, Recorder: w.events, Clock: w.clock}
	w.revision(ctx)
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

// revision makes the NodeTypeRevision that the nodetype controller would make of the sample.
func (w *world) revision(ctx context.Context) {
	w.t.Helper()
	var nodeType v1alpha1.NodeType
	must(w.t, w.c.Get(ctx, client.ObjectKey{Name: "h100"}, &nodeType))
	var image v1alpha1.OSImage
	must(w.t, w.c.Get(ctx, client.ObjectKey{Name: nodeType.Spec.OSImageRef.Name}, &image))
	must(w.t, w.c.Create(ctx, &v1alpha1.NodeTypeRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "h100-1"},
		Spec: v1alpha1.NodeTypeRevisionSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, GPU: nodeType.Spec.GPU, HashVersion: 1,
			Image: v1alpha1.RevisionImage{Name: image.Name, Checksum: image.Spec.Checksum, Format: image.Spec.Format, UserData: v1alpha1.UserDataCloudInit},
		},
	}))
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
	w    *world
	t    *testing.T
	name string
}

// join makes a Machine in Joining and its Node as kubelet registers it, gated or not.
func (w *world) join(t *testing.T, name string, gated bool) *machine {
	t.Helper()
	ctx := context.Background()
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}},
	}
	must(t, w.c.Create(ctx, m))
	m.Status = v1alpha1.MachineStatus{Phase: v1alpha1.MachineJoining, Revision: "h100-1", Attempt: 1, SystemUUID: "4c4c4544-0042-3010-8053-b8c04f334432"}
	must(t, w.c.Status().Update(ctx, m))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: v1alpha1.ProviderID(m.UID, 1)}}
	if gated {
		node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.DefaultGateTaintKey, Effect: corev1.TaintEffectNoSchedule}}
	}
	must(t, w.c.Create(ctx, node))
	out := &machine{w: w, t: t, name: name}
	out.report("boot-1", "8")
	return out
}

// report is kubelet's status of that boot with so many GPUs.
func (m *machine) report(boot, gpus string) {
	m.t.Helper()
	m.w.eventually("the node's status to be written", func() error {
		node := m.node()
		q := resource.MustParse(gpus)
		node.Status.Capacity = corev1.ResourceList{gpu: q, "cpu": resource.MustParse("96"), "memory": resource.MustParse("760Gi")}
		node.Status.Allocatable = corev1.ResourceList{gpu: q}
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
	must(m.t, m.w.c.Get(context.Background(), client.ObjectKey{Namespace: "research", Name: m.name}, &out))
	return &out
}

// reconcile judges until nothing changes any more; the clock stands still meanwhile.
func (m *machine) reconcile() {
	m.t.Helper()
	ctx := ctrllog.IntoContext(context.Background(), testr.New(m.t))
	for range 50 {
		m.w.eventually("the tenant's cache to follow", func() error { return m.cached(ctx) })
		before := m.get().ResourceVersion + m.node().ResourceVersion
		if _, err := m.w.r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "research", Name: m.name}}); err != nil {
			m.t.Fatal(err)
		}
		if m.get().ResourceVersion+m.node().ResourceVersion == before {
			return
		}
	}
	m.t.Fatal("reconciling does not come to rest")
}

func (m *machine) cached(ctx context.Context) error {
	access, err := m.w.r.Tenants.For(m.w.tenant)
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
	return nil
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

func TestTheGateOfRealNodes(t *testing.T) {
	w := start(t)
	t.Run("is lifted only on a pass that settled, and comes back on a reboot and when a GPU is lost", func(t *testing.T) {
		m := w.join(t, "node-a", true)
		m.report("boot-1", "0")
		m.reconcile()
		m.expect("without GPUs", true, false, v1alpha1.ReasonResourcesMissing)
		m.report("boot-1", "8")
		m.reconcile()
		m.expect("with its GPUs", true, false, v1alpha1.ReasonSettling)
		m.after(29 * time.Second)
		m.expect("before it settled", true, false, v1alpha1.ReasonSettling)
		m.after(time.Second)
		m.expect("settled", false, true, v1alpha1.ReasonValidated)
		m.report("boot-2", "8")
		m.reconcile()
		m.expect("rebooted", true, false, v1alpha1.ReasonSettling)
		if !w.heard(v1alpha1.ReasonNodeRebooted) {
			t.Error("no event tells of the reboot")
		}
		m.after(30 * time.Second)
		m.expect("settled again", false, true, v1alpha1.ReasonValidated)
		m.report("boot-2", "7")
		m.reconcile()
		m.expect("a GPU lost", true, false, v1alpha1.ReasonResourcesMissing)
	})
	t.Run("is put on a node that came without it", func(t *testing.T) {
		m := w.join(t, "node-b", false)
		m.reconcile()
		m.expect("first seen", true, false, v1alpha1.ReasonSettling)
		if !w.heard(v1alpha1.ReasonGateMissed) {
			t.Error("no event tells that the gate was missed")
		}
		m.after(30 * time.Second)
		m.expect("settled", false, true, v1alpha1.ReasonValidated)
	})
	t.Run("leaves other taints alone", func(t *testing.T) {
		m := w.join(t, "node-c", true)
		node := m.node()
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule})
		must(t, w.c.Update(context.Background(), node))
		m.reconcile()
		m.after(30 * time.Second)
		if !slices.ContainsFunc(m.node().Spec.Taints, func(t corev1.Taint) bool { return t.Key == "team" && t.Value == "x" }) {
			t.Errorf("the team's taint is gone: %v", m.node().Spec.Taints)
		}
	})
	t.Run("is not touched on a Node of another installation", func(t *testing.T) {
		m := w.join(t, "node-d", false)
		taken := m.get()
		taken.Status.Attempt = 2
		must(t, w.c.Status().Update(context.Background(), taken))
		m.reconcile()
		c := meta.FindStatusCondition(m.get().Status.Conditions, v1alpha1.ConditionValidated)
		if c == nil || c.Reason != v1alpha1.ReasonNodeConflict || m.gated() {
			t.Errorf("condition %+v, taints %v", c, m.node().Spec.Taints)
		}
	})
	t.Run("is forgotten with the Node, and earned again by the next one", func(t *testing.T) {
		m := w.join(t, "node-i", true)
		m.reconcile()
		m.after(30 * time.Second)
		m.expect("settled", false, true, v1alpha1.ReasonValidated)
		first := m.node()
		must(t, w.c.Delete(context.Background(), first))
		next := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}, Spec: corev1.NodeSpec{ProviderID: first.Spec.ProviderID}}
		w.eventually("the name to be free", func() error { return w.c.Create(context.Background(), next) })
		m.report("boot-1", "8")
		m.reconcile()
		m.expect("another Node object without the gate", true, false, v1alpha1.ReasonSettling)
		must(t, w.c.Delete(context.Background(), next))
		w.eventually("the verdict to be forgotten", func() error {
			if _, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "research", Name: m.name}}); err != nil {
				return err
			}
			if v := m.get().Status.Verdict; v != nil {
				return fmt.Errorf("the verdict is %+v", v)
			}
			return nil
		})
	})
	t.Run("costs no write while nothing changes", func(t *testing.T) {
		m := w.join(t, "node-e", true)
		m.report("boot-1", "7")
		m.reconcile()
		before := m.get().ResourceVersion
		for range 5 {
			m.after(time.Minute)
		}
		if after := m.get().ResourceVersion; after != before {
			t.Errorf("the Machine went from version %s to %s", before, after)
		}
	})
	t.Run("keeps off a plugin that does not tolerate it, and the verdict names it", func(t *testing.T) {
		ctx := context.Background()
		set := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nvidia-device-plugin-daemonset"}}
		m := w.join(t, "node-f", true)
		m.report("boot-1", "0")
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		m.reconcile()
		if hint := m.hint(); strings.Contains(hint, "DaemonSets") {
			t.Errorf("the sample tolerates the gate, and the hint is %q", hint)
		}
		w.eventually("the DaemonSet to be changed", func() error {
			if err := w.c.Get(ctx, client.ObjectKeyFromObject(&set), &set); err != nil {
				return err
			}
			set.Spec.Template.Spec.Tolerations = set.Spec.Template.Spec.Tolerations[:1]
			return w.c.Update(ctx, &set)
		})
		m.after(time.Minute)
		if hint := m.hint(); !strings.Contains(hint, "kube-system/nvidia-device-plugin-daemonset") {
			t.Errorf("hint %q does not name the DaemonSet", hint)
		}
	})
	t.Run("is lifted at the join by Observe, which only reports", func(t *testing.T) {
		ctx := context.Background()
		var nodeType v1alpha1.NodeType
		must(t, w.c.Get(ctx, client.ObjectKey{Name: "h100"}, &nodeType))
		nodeType.Spec.Validation.OnFailure = v1alpha1.OnFailureObserve
		must(t, w.c.Update(ctx, &nodeType))
		m := w.join(t, "node-g", true)
		m.report("boot-1", "7")
		m.reconcile()
		m.expect("with a GPU missing", false, false, v1alpha1.ReasonObserveOnly)
		m.report("boot-1", "8")
		m.reconcile()
		m.after(30 * time.Second)
		m.expect("complete", false, true, v1alpha1.ReasonValidated)
	})
	t.Run("is not touched while the tenant is unknown", func(t *testing.T) {
		m := w.join(t, "node-h", false)
		w.r.Tenants.Remove(w.tenant)
		if _, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "research", Name: m.name}}); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(m.get().Status.Conditions, v1alpha1.ConditionValidated)
		if c == nil || c.Status != metav1.ConditionUnknown || m.gated() {
			t.Errorf("condition %+v, taints %v", c, m.node().Spec.Taints)
		}
	})
}

func (m *machine) hint() string {
	for _, c := range m.get().Status.Verdict.Checks {
		if c.Name == "resource/nvidia.com/gpu" {
			return c.Hint
		}
	}
	return ""
}
