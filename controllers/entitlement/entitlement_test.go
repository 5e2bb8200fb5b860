package entitlement

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
	"github.com/ingot-dev/ingot/test/tenantcalls"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// rig is a shared cluster, which is the management cluster itself, with one tenant.
type rig struct {
	t *testing.T
	// namespace has the TenantCluster and the Entitlements, and tenant is the tenant's namespace and name.
	namespace, tenant string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, namespace: server.Namespace(t), tenant: server.Namespace(t)}
	server.Create(t, &v1alpha1.TenantCluster{ObjectMeta: r.meta("shared"), Spec: v1alpha1.TenantClusterSpec{
		KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}},
	}})
	return r
}

func (r *rig) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.namespace, Name: name}
}

// start runs the controller with a kubeconfig of the shared cluster.
func (r *rig) start(kubeconfig []byte) (stop func()) {
	r.t.Helper()
	var calls tenantcalls.Recorder
	r.t.Cleanup(func() { calls.Check(r.t) })
	tenants := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Log: logr.Discard(), WrapTransport: calls.Wrap})
	stop = server.Run(r.t, func(mgr ctrl.Manager) error {
		if err := mgr.Add(tenants); err != nil {
			return err
		}
		return (&Reconciler{Client: mgr.GetClient(), Tenants: tenants, Recorder: mgr.GetEventRecorder(name), Clock: clock.RealClock{}}).SetupWithManager(mgr)
	})
	if err := tenants.Set(r.t.Context(), types.NamespacedName{Namespace: r.namespace, Name: "shared"}, kubeconfig); err != nil {
		r.t.Fatal(err)
	}
	return stop
}

// addNodeType creates a NodeType that promises what a golden plan does, unless it exists.
func addNodeType(t *testing.T, golden string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "presentation", "testdata", golden+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var plan v1alpha1.NodePlan
	if err := yaml.Unmarshal(text, &plan); err != nil {
		t.Fatal(err)
	}
	if server.Client.Get(t.Context(), types.NamespacedName{Name: golden}, &v1alpha1.NodeType{}) == nil {
		return
	}
	server.Create(t, &v1alpha1.NodeType{
		ObjectMeta: metav1.ObjectMeta{Name: golden},
		Spec: v1alpha1.NodeTypeSpec{
			ProviderRef: v1alpha1.LocalReference{Name: "hall-1"}, OSImageRef: v1alpha1.LocalReference{Name: "debian"},
			HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu-model": golden}},
		},
		Status: v1alpha1.NodeTypeStatus{StableRevision: golden, StableRendering: golden},
	}, &v1alpha1.NodeTypeRendering{ObjectMeta: metav1.ObjectMeta{Name: golden}, Spec: v1alpha1.NodeTypeRenderingSpec{
		RevisionRef: v1alpha1.LocalReference{Name: golden}, Encoding: v1alpha1.RenderingEncoding, Plan: plan,
	}})
}

func class(name, nodeType string, kind v1alpha1.DeviceKind, devices int32) v1alpha1.EntitledClass {
	return v1alpha1.EntitledClass{Name: name, NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, Kind: kind, Devices: devices}
}

// classes are 2 whole GPUs and 4 instances of a device plugin.
func classes() []v1alpha1.EntitledClass {
	mig := class("mig-1g", "a100-mig-part", v1alpha1.DeviceResource, 4)
	mig.Resource = "nvidia.com/mig-1g.5gb"
	return []v1alpha1.EntitledClass{class("h100", "h100-dra", v1alpha1.DeviceGPU, 2), mig}
}

// entitle creates an Entitlement of the tenant.
func (r *rig) entitle(classes ...v1alpha1.EntitledClass) {
	r.t.Helper()
	server.Create(r.t, &v1alpha1.Entitlement{ObjectMeta: r.meta("legal"), Spec: v1alpha1.EntitlementSpec{
		TenantClusterRef: v1alpha1.LocalReference{Name: "shared"}, Tenant: r.tenant, Namespaces: v1alpha1.TenantNamespaces{Names: []string{r.tenant}}, Classes: classes,
	}})
}

func (r *rig) change(change func(*v1alpha1.Entitlement)) {
	r.t.Helper()
	e := r.read("legal")
	before := e.DeepCopy()
	change(e)
	if err := server.Client.Patch(r.t.Context(), e, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) read(name string) *v1alpha1.Entitlement {
	r.t.Helper()
	var e v1alpha1.Entitlement
	if err := server.Client.Get(r.t.Context(), types.NamespacedName{Namespace: r.namespace, Name: name}, &e); err != nil {
		r.t.Fatal(err)
	}
	return &e
}

// awaitCondition waits for a condition of an Entitlement as it is now, and returns its message.
func (r *rig) awaitCondition(name, condition, reason string) string {
	r.t.Helper()
	var message string
	management.Eventually(r.t, name+" has "+condition+" with the reason "+reason, func() bool {
		e := r.read(name)
		c := meta.FindStatusCondition(e.Status.Conditions, condition)
		if c == nil || c.ObservedGeneration != e.Generation {
			return false
		}
		message = c.Message
		return c.Reason == reason
	})
	return message
}

// awaitClass waits for the condition of a class, and returns the class.
func (r *rig) awaitClass(name, reason string) v1alpha1.EntitledClassStatus {
	r.t.Helper()
	var out v1alpha1.EntitledClassStatus
	management.Eventually(r.t, "class "+name+" has the reason "+reason, func() bool {
		for _, c := range r.read("legal").Status.Classes {
			if c.Name == name && meta.IsStatusConditionPresentAndEqual(c.Conditions, v1alpha1.ConditionAvailable, metav1.ConditionTrue) == (reason == v1alpha1.ReasonDevicesAvailable) &&
				meta.FindStatusCondition(c.Conditions, v1alpha1.ConditionAvailable).Reason == reason {
				out = c
				return true
			}
		}
		return false
	})
	return out
}

// nudge has the controller read the shared cluster again at once: in real life it does so after half a minute.
func (r *rig) nudge() {
	r.t.Helper()
	r.change(func(e *v1alpha1.Entitlement) {
		if e.Spec.Schedulers == nil {
			e.Spec.Schedulers = []string{"system:kube-scheduler"}
		} else {
			e.Spec.Schedulers = nil
		}
	})
}

// addNode creates a Node with devices of an H100, and its ResourceSlice.
func addNode(t *testing.T, name string, devices int, taints ...corev1.Taint) {
	t.Helper()
	now := metav1.Now()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{
			Capacity:    corev1.ResourceList{"pods": resource.MustParse("110"), "cpu": resource.MustParse("96"), "memory": resource.MustParse("768Gi")},
			Allocatable: corev1.ResourceList{"pods": resource.MustParse("110"), "cpu": resource.MustParse("96"), "memory": resource.MustParse("768Gi")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "KubeletReady"}},
		},
	}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.nvidia.com", NodeName: ptr.To(name), Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1},
	}}
	for i := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name: "gpu-" + string(rune('0'+i)),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": {StringValue: ptr.To("gpu")}, "productName": {StringValue: ptr.To("NVIDIA H100 80GB HBM3")}, "architecture": {StringValue: ptr.To("Hopper")},
				"driverVersion": {VersionValue: ptr.To("570.133.7")},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	server.Create(t, node, slice)
	t.Cleanup(func() {
		for _, o := range []client.Object{slice, node} {
			if err := server.Client.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
}

// as returns a client of another user.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(config, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
