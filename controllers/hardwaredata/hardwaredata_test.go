package hardwaredata

import (
	"fmt"
	"os"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/baremetaloperator"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// eightH100 are as Ironic finds them where its list of accelerators has the H100.
func eightH100() []baremetaloperator.Accelerator {
	var out []baremetaloperator.Accelerator
	for i := range 8 {
		out = append(out, baremetaloperator.Accelerator{Type: "GPU", VendorID: "10de", DeviceID: "2330", DeviceInfo: "NVIDIA H100", PCIAddress: fmt.Sprintf("0000:%02x:00.0", i+1)})
	}
	return out
}

// site is a namespace whose hosts a baremetal-operator serves.
type site struct {
	t         *testing.T
	namespace string
	operator  *baremetaloperator.Operator
	servers   map[string]*baremetaloperator.SimulatedServer
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, namespace: server.Namespace(t), servers: map[string]*baremetaloperator.SimulatedServer{}}
	s.operator = baremetaloperator.New(baremetaloperator.Options{
		Client: server.Client, Server: func(key types.NamespacedName) baremetaloperator.Server { return s.servers[key.Name] },
	})
	return s
}

// add adds a host with the labels and lets the operator inspect it.
func (s *site) add(name string, labels map[string]string, change func(*metal3.BareMetalHost), accelerators ...baremetaloperator.Accelerator) {
	s.t.Helper()
	s.servers[name] = &baremetaloperator.SimulatedServer{Accelerators: accelerators}
	h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: labels}, Spec: metal3.BareMetalHostSpec{
		BootMACAddress: "52:54:00:00:00:01", BMC: metal3.BMCDetails{Address: "redfish://10.0.0.1/" + name, CredentialsName: name},
	}}
	change(h)
	credentials := map[string][]byte{"username": []byte("root"), "password": []byte("calvin")}
	for _, o := range []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Data: credentials}, h} {
		if err := server.Client.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
	s.look(name)
}

func (s *site) host(name string) *metal3.BareMetalHost {
	s.t.Helper()
	h := &metal3.BareMetalHost{}
	if err := server.Client.Get(s.t.Context(), types.NamespacedName{Namespace: s.namespace, Name: name}, h); err != nil {
		s.t.Fatal(err)
	}
	return h
}

// look lets the operator look at the host until it is available. A conflict with a label is retried by the next look.
func (s *site) look(name string) {
	s.t.Helper()
	management.Eventually(s.t, "host "+name+" is available", func() bool {
		_, _ = s.operator.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.namespace, Name: name}})
		return s.host(name).Status.Provisioning.State == metal3.StateAvailable
	})
}

// await waits until the label has the value.
func (s *site) await(name, key, value string) {
	s.t.Helper()
	management.Eventually(s.t, fmt.Sprintf("host %s has the label %s=%s", name, key, value), func() bool { return s.host(name).Labels[key] == value })
}

func asItIs(*metal3.BareMetalHost) {}

// TestAHostIsLabelledByItsHardwareData begins before the NodeProvider is there, and inspects a host again. What is not known keeps the label of people.
func TestAHostIsLabelledByItsHardwareData(t *testing.T) {
	if err := baremetaloperator.AddConditions(t.Context(), server.Client); err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	s.add("known", map[string]string{v1alpha1.LabelGPUCount: "4"}, asItIs, eightH100()...)
	s.add("unknown", map[string]string{v1alpha1.LabelGPUModel: "H200-SXM5-141GB", v1alpha1.LabelGPUCount: "8"}, asItIs)
	s.add("paused", nil, func(h *metal3.BareMetalHost) {}, eightH100()...)
	s.add("others", nil, func(h *metal3.BareMetalHost) {
		h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "Metal3Machine", Namespace: s.namespace, Name: "workers-x7k2p"}
	}, eightH100()...)
	paused := s.host("paused")
	before := paused.DeepCopy()
	metav1.SetMetaDataAnnotation(&paused.ObjectMeta, metal3.PausedAnnotation, "")
	if err := server.Client.Patch(t.Context(), paused, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	others := s.host("others")
	server.Run(t, func(mgr ctrl.Manager) error {
		return (&Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("hardwaredata")}).SetupWithManager(mgr)
	})
	server.Create(t, &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: v1alpha1.NodeProviderSpec{HostNamespace: s.namespace, Metal3: &v1alpha1.Metal3Provider{}}})

	s.await("known", v1alpha1.LabelGPUCount, "8")
	s.await("known", v1alpha1.LabelGPUModel, "H100-SXM5-80GB")
	s.await("unknown", v1alpha1.LabelMemoryGiB, "2048")
	s.await("unknown", v1alpha1.LabelManufacturer, "Example")
	if labels := s.host("unknown").Labels; labels[v1alpha1.LabelGPUModel] != "H200-SXM5-141GB" || labels[v1alpha1.LabelGPUCount] != "8" {
		t.Errorf("HardwareData names no GPU, and the labels that people wrote are now %v", labels)
	}

	s.servers["known"].Accelerators = eightH100()[:7]
	known := s.host("known")
	before = known.DeepCopy()
	metav1.SetMetaDataAnnotation(&known.ObjectMeta, metal3.InspectAnnotationPrefix, "")
	if err := server.Client.Patch(t.Context(), known, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the host is labelled by its second inspection", func() bool {
		s.look("known")
		return s.host("known").Labels[v1alpha1.LabelGPUCount] == "7"
	})
	if now := s.host("paused"); len(now.Labels) > 0 {
		t.Errorf("a paused host was labelled: %v", now.Labels)
	}
	if now := s.host("others"); now.ResourceVersion != others.ResourceVersion {
		t.Errorf("the host of Cluster API was written: %v", now.Labels)
	}
}
