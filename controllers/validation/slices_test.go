package validation

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

const driver = "gpu.nvidia.com"

// joinDRA makes a Machine of the sample h200-dra and its gated Node, whose driver publishes nothing yet.
func (w *world) joinDRA(t *testing.T, name string) *machine {
	t.Helper()
	m := w.register(t, name, "h200-dra", w.tenant, true)
	m.report("boot-1", "")
	return m
}

// publish writes one slice of the node's pool, with the GPUs from first to last, one before it.
func (m *machine) publish(name string, generation, of int64, first, last int) *resourcev1.ResourceSlice {
	m.t.Helper()
	node := m.node()
	s := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: m.name + "-" + name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: ptr.To(true)}}},
		Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &m.name,
			Pool: resourcev1.ResourcePool{Name: m.name, Generation: generation, ResourceSliceCount: of}, Devices: devices(first, last)},
	}
	must(m.t, m.w.c.Create(context.Background(), s))
	m.t.Cleanup(func() { must(m.t, client.IgnoreNotFound(m.w.c.Delete(context.Background(), s))) })
	return s
}

func devices(first, last int) []resourcev1.Device {
	var out []resourcev1.Device
	text := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	version := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{VersionValue: &s} }
	for i := first; i < last; i++ {
		out = append(out, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": text("gpu"), "uuid": text(fmt.Sprintf("GPU-%d", i)), "productName": text("NVIDIA H200"), "brand": text("Nvidia"), "architecture": text("Hopper"),
			"cudaComputeCapability": version("9.0.0"), "cudaDriverVersion": version("12.8.0"), "driverVersion": version("570.172.8")},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("143771Mi")}}})
	}
	return out
}

// forms are the first so many of eight GPUs for containers, and so many for virtual machines.
func forms(gpus, functions int) []resourcev1.Device {
	text := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	address := func(i int) resourcev1.DeviceAttribute { return text(fmt.Sprintf("0000:%02x:00.0", i)) }
	out := devices(0, gpus)
	for i := range out {
		out[i].Attributes["resource.kubernetes.io/pciBusID"] = address(i)
	}
	for i := range functions {
		out = append(out, resourcev1.Device{Name: fmt.Sprint("gpu-vfio-", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": text("vfio"), "deviceID": text("0x2335"), "resource.kubernetes.io/pciBusID": address(i)}})
	}
	return out
}

// withVFIO has the Machine be installed with the sample h200-dra for containers and virtual machines.
func (m *machine) withVFIO() {
	m.t.Helper()
	ctx := context.Background()
	var made v1alpha1.NodeTypeRendering
	must(m.t, m.w.c.Get(ctx, client.ObjectKey{Name: "h200-dra-1-made"}, &made))
	made.ObjectMeta = metav1.ObjectMeta{Name: "h200-vfio-made"}
	slices := &made.Spec.Plan.Expectation.Slices[0]
	slices.Devices = append(slices.Devices, v1alpha1.ExpectedDevices{Type: "vfio", Count: 8, Attributes: map[string][]string{"deviceID": {"0x2335"}}})
	slices.GPUAttribute = "resource.kubernetes.io/pciBusID"
	made.Spec.Plan.Expectation.GPUModes = nil
	must(m.t, m.w.c.Create(ctx, &made))
	installed := m.get()
	installed.Status.Rendering = made.Name
	must(m.t, m.w.c.Status().Update(ctx, installed))
}

// change changes a slice as its driver does.
func (m *machine) change(s *resourcev1.ResourceSlice, change func(*resourcev1.ResourceSlice)) {
	m.t.Helper()
	m.w.eventually("the slice to be changed", func() error {
		if err := m.w.c.Get(context.Background(), client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		change(s)
		return m.w.c.Update(context.Background(), s)
	})
}

// validating is the phase in which there is a deadline.
func (m *machine) validating(left time.Duration) {
	m.t.Helper()
	got := m.get()
	got.Status.Phase, got.Status.Deadline = v1alpha1.MachineValidating, &metav1.MicroTime{Time: m.w.clock.Now().Add(left)}
	got.Status.Timeline = []v1alpha1.PhaseEntry{{Phase: v1alpha1.MachineValidating, At: metav1.NewMicroTime(m.w.clock.Now())}}
	must(m.t, m.w.c.Status().Update(context.Background(), got))
}

// shows compares one check, and that its hint speaks of something.
func (m *machine) shows(name string, result v1alpha1.CheckResult, observed, hint string) {
	m.t.Helper()
	all := m.get().Status.Verdict.Checks
	for _, c := range all {
		if c.Name != name {
			continue
		}
		if c.Result != result || c.Observed != observed || !strings.Contains(c.Hint, hint) {
			m.t.Errorf("%+v, want %s with %q and a hint of %q", c, result, observed, hint)
		}
		return
	}
	m.t.Errorf("no check %s in %+v", name, all)
}

func TestTheGateOfRealNodesWithDRA(t *testing.T) {
	w := start(t)
	const pool, claims = "slices/gpu.nvidia.com", "deviceclass/gpu.nvidia.com"
	t.Run("is lifted when every slice of the newest generation is there, and comes back when a device is lost", func(t *testing.T) {
		m := w.joinDRA(t, "dra-a")
		m.reconcile()
		m.expect("without slices", true, false, v1alpha1.ReasonResourcesMissing)
		m.shows(pool, v1alpha1.CheckWait, "", "kubelet plugin")
		m.publish("0", 1, 2, 0, 4)
		m.reconcile()
		m.shows(pool, v1alpha1.CheckWait, "pool dra-a has 1 of 2 slices of generation 1", "resourceslices")
		second := m.publish("1", 1, 2, 4, 8)
		m.reconcile()
		m.expect("complete", true, false, v1alpha1.ReasonSettling)
		m.after(30 * time.Second)
		m.expect("settled", false, true, v1alpha1.ReasonValidated)
		m.change(second, func(s *resourcev1.ResourceSlice) { s.Spec.Devices = devices(4, 7) })
		m.reconcile()
		m.expect("a device lost", true, false, v1alpha1.ReasonResourcesMissing)
		m.shows(pool+"/gpu", v1alpha1.CheckWait, "7", "")
	})
	t.Run("stays when a device is missing at the deadline", func(t *testing.T) {
		m := w.joinDRA(t, "dra-b")
		m.publish("0", 1, 1, 0, 7)
		m.validating(time.Minute)
		m.reconcile()
		m.expect("before the deadline", true, false, v1alpha1.ReasonResourcesMissing)
		m.after(time.Minute)
		m.expect("after the deadline", true, false, v1alpha1.ReasonValidationTimedOut)
		m.shows(pool+"/gpu", v1alpha1.CheckFail, "7", "")
	})
	t.Run("stays until a newer generation is complete, whatever the older one was", func(t *testing.T) {
		m := w.joinDRA(t, "dra-c")
		m.publish("old", 1, 1, 0, 8)
		next := m.publish("new", 2, 2, 0, 8)
		m.reconcile()
		m.shows(pool, v1alpha1.CheckWait, "pool dra-c has 1 of 2 slices of generation 2", "")
		m.change(next, func(s *resourcev1.ResourceSlice) { s.Spec.Pool.Generation, s.Spec.Pool.ResourceSliceCount = 3, 1 })
		m.reconcile()
		m.expect("complete", true, false, v1alpha1.ReasonSettling)
	})
	t.Run("stays while a device plugin gives the GPUs away too, and the verdict names it", func(t *testing.T) {
		everywhere := &appsv1.DaemonSet{}
		must(t, w.c.Get(context.Background(), client.ObjectKey{Namespace: "kube-system", Name: "nvidia-device-plugin-daemonset"}, everywhere))
		everywhere.ObjectMeta = metav1.ObjectMeta{Namespace: "kube-system", Name: "plugin-everywhere"}
		everywhere.Spec.Template.Spec.Affinity = nil
		must(t, w.c.Create(context.Background(), everywhere))
		w.clock.SetTime(w.clock.Now().Add(time.Minute)) // DaemonSets are read now and then.
		m := w.joinDRA(t, "dra-d")
		m.publish("0", 1, 1, 0, 8)
		m.report("boot-1", "8")
		m.reconcile()
		m.expect("beside a device plugin", true, false, v1alpha1.ReasonChecksFailed)
		m.shows("foreign/nvidia.com/gpu", v1alpha1.CheckFail, "8", "kube-system/plugin-everywhere")
		m.report("boot-1", "0")
		m.reconcile()
		m.expect("with its residue", true, false, v1alpha1.ReasonSettling)
	})
	t.Run("stays off while claims hold GPUs in one of their forms, also after a reboot", func(t *testing.T) {
		m := w.joinDRA(t, "dra-v")
		m.withVFIO()
		s := m.publish("0", 1, 1, 0, 0)
		m.change(s, func(s *resourcev1.ResourceSlice) { s.Spec.Devices = forms(8, 7) })
		m.reconcile()
		m.expect("before it was ever admitted, without all forms", true, false, v1alpha1.ReasonResourcesMissing)
		m.change(s, func(s *resourcev1.ResourceSlice) { s.Spec.Devices = forms(8, 8) })
		m.reconcile()
		m.after(30 * time.Second)
		m.expect("with all forms", false, true, v1alpha1.ReasonValidated)
		m.change(s, func(s *resourcev1.ResourceSlice) { s.Spec.Devices = forms(7, 8) })
		m.reconcile()
		m.expect("a claim holds a GPU for a virtual machine", false, true, v1alpha1.ReasonValidated)
		m.shows(pool+"/gpu", v1alpha1.CheckPass, "7, and 1 in another form", "")
		ready := m.get()
		ready.Status.Timeline = []v1alpha1.PhaseEntry{{Phase: v1alpha1.MachineReady, At: metav1.NewMicroTime(w.clock.Now())}, {Phase: v1alpha1.MachineValidating, At: metav1.NewMicroTime(w.clock.Now())}}
		must(t, w.c.Status().Update(context.Background(), ready))
		m.report("boot-2", "")
		m.reconcile()
		m.expect("another boot", true, false, v1alpha1.ReasonSettling)
		m.after(30 * time.Second)
		m.expect("another boot with the same claims", false, true, v1alpha1.ReasonValidated)
	})
	t.Run("stays while a device is tainted", func(t *testing.T) {
		m := w.joinDRA(t, "dra-e")
		s := m.publish("0", 1, 1, 0, 8)
		m.change(s, func(s *resourcev1.ResourceSlice) {
			s.Spec.Devices[5].Taints = []resourcev1.DeviceTaint{{Key: "gpu.nvidia.com/xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		})
		m.reconcile()
		m.shows(pool+"/taints", v1alpha1.CheckWait, "gpu-5: gpu.nvidia.com/xid=79:NoSchedule", "Xid")
	})
	t.Run("stays while the DeviceClass is missing or selects something else, and is not asked for it afterwards", func(t *testing.T) {
		m := w.joinDRA(t, "dra-f")
		m.publish("0", 1, 1, 0, 8)
		class := w.class()
		must(t, w.c.Delete(context.Background(), class))
		m.after(time.Minute)
		m.expect("without its class", true, false, v1alpha1.ReasonChecksWaiting)
		m.shows(claims, v1alpha1.CheckWait, "it does not exist", "Helm")
		selector := class.Spec.Selectors[0].CEL.Expression
		again := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: class.Name}, Spec: *class.Spec.DeepCopy()}
		again.Spec.Selectors[0].CEL.Expression = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].uuid != 'GPU-3'"
		must(t, w.c.Create(context.Background(), again))
		m.after(time.Minute)
		m.shows(claims, v1alpha1.CheckWait, "7", "selectors")
		again.Spec.Selectors[0].CEL.Expression = selector
		must(t, w.c.Update(context.Background(), again))
		m.after(time.Minute)
		m.after(30 * time.Second)
		m.expect("with its class", false, true, v1alpha1.ReasonValidated)
		must(t, w.c.Delete(context.Background(), again))
		m.after(time.Minute)
		m.expect("admitted", false, true, v1alpha1.ReasonValidated)
		m.report("boot-2", "")
		m.after(time.Minute)
		m.expect("booted again", true, false, v1alpha1.ReasonChecksWaiting)
		must(t, w.c.Create(context.Background(), &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: class.Name}, Spec: *class.Spec.DeepCopy()}))
	})
	t.Run("stays on a node with a driver beside the device plugin that was promised", func(t *testing.T) {
		m := w.join(t, "dra-g", true)
		m.reconcile()
		m.expect("alone", true, false, v1alpha1.ReasonSettling)
		m.publish("0", 1, 1, 0, 8)
		m.after(time.Minute)
		m.expect("beside a driver", true, false, v1alpha1.ReasonChecksFailed)
		m.shows("foreign/gpu.nvidia.com", v1alpha1.CheckFail, "8 devices", "keep the driver off this node")
	})
	t.Run("stays where the tenant's API serves no slices", func(t *testing.T) { w.withoutDRA(t) })
	t.Run("is looked at when a slice comes, changes and goes", func(t *testing.T) { w.wakes(t) })
}

func (w *world) class() *resourcev1.DeviceClass {
	w.t.Helper()
	var class resourcev1.DeviceClass
	must(w.t, w.c.Get(context.Background(), client.ObjectKey{Name: driver}, &class))
	return &class
}

// withoutDRA reaches the same API server through a proxy that knows no resource.k8s.io, as an older one does.
func (w *world) withoutDRA(t *testing.T) {
	config, err := tenantaccess.Vet(w.kubeconfig)
	must(t, err)
	transport, err := rest.TransportFor(config)
	must(t, err)
	target, err := url.Parse(config.Host)
	must(t, err)
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Header.Del("Authorization") }}
	old := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/apis/resource.k8s.io") {
			http.NotFound(out, request)
			return
		}
		proxy.ServeHTTP(out, request)
	}))
	t.Cleanup(old.Close)
	key := types.NamespacedName{Namespace: w.tenant.Namespace, Name: "older"}
	must(t, w.r.Tenants.Set(context.Background(), key, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: c}}], users: [{name: c, user: {token: a}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]}`, old.URL,
		base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: old.Certificate().Raw})))))
	t.Cleanup(func() { w.r.Tenants.Remove(key) })
	w.eventually("the older tenant to answer", func() error { _, err := w.r.Tenants.For(key); return err })
	m := w.register(t, "dra-h", "h200-dra", key, true)
	m.report("boot-1", "")
	m.reconcile()
	m.expect("without the API", true, false, v1alpha1.ReasonDRANotServed)
	m.shows("slices/gpu.nvidia.com", v1alpha1.CheckFail, "it does not", "1.34 or newer")
}

func (w *world) wakes(t *testing.T) {
	m := w.joinDRA(t, "dra-i")
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	must(t, w.r.Tenants.NodeSource("test", machineOf).Start(ctx, queue))
	woken := func(when string) {
		w.eventually("the Machine to be looked at when "+when, func() error {
			for queue.Len() > 0 {
				request, _ := queue.Get()
				queue.Done(request)
				if request.Name == m.name {
					return nil
				}
			}
			return errors.New("nobody was woken")
		})
	}
	settle := func() {
		w.eventually("the cache to follow", func() error { return m.cached(ctx) })
		for queue.Len() > 0 {
			request, _ := queue.Get()
			queue.Done(request)
		}
	}
	settle()
	s := m.publish("0", 1, 1, 0, 8)
	woken("a slice comes")
	settle()
	m.change(s, func(s *resourcev1.ResourceSlice) { s.Spec.Devices = devices(0, 7) })
	woken("a slice changes")
	settle()
	must(t, w.c.Delete(ctx, s))
	woken("a slice goes")
}
