package inuse

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// rig is one of each kind, all with the name of the test's namespace, and the controller.
type rig struct {
	t    *testing.T
	name string
	// stop ends the controller.
	stop func()

	nodeType  *v1alpha1.NodeType
	provider  *v1alpha1.NodeProvider
	image     *v1alpha1.OSImage
	revision  *v1alpha1.NodeTypeRevision
	rendering *v1alpha1.NodeTypeRendering
}

func newRig(t *testing.T) *rig {
	t.Helper()
	name := server.Namespace(t)
	global, ref := metav1.ObjectMeta{Name: name}, v1alpha1.LocalReference{Name: name}
	digest := "sha256:" + strings.Repeat("0", 64)
	r := &rig{
		t: t, name: name,
		image: &v1alpha1.OSImage{ObjectMeta: global, Spec: v1alpha1.OSImageSpec{
			URL: "http://127.0.0.1/x.raw", Checksum: digest, Format: v1alpha1.FormatRaw, UserData: v1alpha1.UserDataCloudInit,
			OS: v1alpha1.OSImageOS{ID: "debian", Version: "13"}, Software: v1alpha1.OSImageSoftware{Kubelet: "1.37.0"},
		}},
		provider: &v1alpha1.NodeProvider{ObjectMeta: global, Spec: v1alpha1.NodeProviderSpec{
			HostNamespace: name, Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "127.0.0.1"}},
		}},
		nodeType: &v1alpha1.NodeType{ObjectMeta: global, Spec: v1alpha1.NodeTypeSpec{
			ProviderRef: ref, OSImageRef: ref, HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"rack": name}},
		}},
		revision: &v1alpha1.NodeTypeRevision{ObjectMeta: global, Spec: v1alpha1.NodeTypeRevisionSpec{
			NodeTypeRef: ref, HashVersion: 1, Image: v1alpha1.RevisionImage{Name: name, Checksum: digest, Format: v1alpha1.FormatRaw, UserData: v1alpha1.UserDataCloudInit},
		}},
		rendering: &v1alpha1.NodeTypeRendering{ObjectMeta: global, Spec: v1alpha1.NodeTypeRenderingSpec{RevisionRef: ref, Encoding: v1alpha1.RenderingEncoding}},
	}
	server.Create(t, r.all()...)
	r.stop = server.Run(t, func(mgr ctrl.Manager) error {
		return (&Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("inuse"), Clock: clock.RealClock{}}).SetupWithManager(mgr)
	})
	for _, o := range r.all() {
		r.await(o, "has the finalizer", func() bool { return slices.Contains(o.GetFinalizers(), v1alpha1.InUseFinalizer) })
	}
	return r
}

func (r *rig) all() []client.Object {
	return []client.Object{r.image, r.provider, r.nodeType, r.revision, r.rendering}
}

// await reads the object until the condition holds.
func (r *rig) await(o client.Object, what string, holds func() bool) {
	r.t.Helper()
	management.Eventually(r.t, o.GetName()+" "+what, func() bool {
		if err := server.Client.Get(r.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			r.t.Fatalf("%s: %v", what, err)
		}
		return holds()
	})
}

func (r *rig) awaitUser(o client.Object, user string) {
	r.t.Helper()
	r.await(o, "is used by "+user, func() bool {
		usedBy, _ := usageOf(o)
		return strings.Contains((*usedBy).String(), user)
	})
}

func (r *rig) awaitGone(o client.Object) {
	r.t.Helper()
	management.Eventually(r.t, o.GetName()+" is gone", func() bool {
		return apierrors.IsNotFound(server.Client.Get(r.t.Context(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)))
	})
}

func (r *rig) delete(o client.Object, options ...client.DeleteOption) {
	r.t.Helper()
	if err := server.Client.Delete(r.t.Context(), o.DeepCopyObject().(client.Object), options...); err != nil {
		r.t.Fatal(err)
	}
}

// install makes a Machine of the NodeType that has its revision and its rendering.
func (r *rig) install(name string) *v1alpha1.Machine {
	r.t.Helper()
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: name}, Spec: v1alpha1.MachineSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: r.name}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"},
	}, Status: v1alpha1.MachineStatus{Revision: r.name, Rendering: r.name}}
	server.Create(r.t, m)
	return m
}

// mustBeHeld expects of an object that is being deleted that it is kept for users such as "2 Machines" and, if it has conditions, says so. Tenants
// read it, so nothing in it, and no event about it, has the name of a user.
func (r *rig) mustBeHeld(o client.Object, user string) {
	r.t.Helper()
	r.await(o, "is kept", func() bool { return o.GetDeletionTimestamp() != nil })
	r.awaitUser(o, user)
	if _, conditions := usageOf(o); conditions != nil {
		r.await(o, "says what keeps it", func() bool {
			_, conditions := usageOf(o)
			c := meta.FindStatusCondition(*conditions, v1alpha1.ConditionReady)
			return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonInUse && strings.Contains(c.Message, user)
		})
	}
	var events corev1.EventList
	if err := server.Client.List(r.t.Context(), &events); err != nil {
		r.t.Fatal(err)
	}
	// The users are in the namespace of the test, and named as NAMESPACE/NAME.
	for _, e := range events.Items {
		if strings.Contains(e.Message, r.name+"/") {
			r.t.Errorf("an event about %s names a user: %s", e.InvolvedObject.Kind, e.Message)
		}
	}
	if text, err := json.Marshal(o); err != nil || strings.Contains(string(text), r.name+"/") {
		r.t.Errorf("it names a user: %s, %v", text, err)
	}
}

func TestADeletedNodeTypeIsKeptForItsMachinesAndPools(t *testing.T) {
	r := newRig(t)
	pool := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: "workers"}, Spec: v1alpha1.NodePoolSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: r.name}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"},
	}}
	server.Create(t, pool)
	m := r.install("workers-1")
	r.delete(r.nodeType)
	r.mustBeHeld(r.nodeType, "1 NodePool")
	r.mustBeHeld(r.nodeType, "1 Machine")
	r.delete(pool)
	r.await(r.nodeType, "counts the Machine alone", func() bool { return r.nodeType.Status.UsedBy.Count == 1 })
	r.delete(m)
	r.awaitGone(r.nodeType)
}

func TestADeletedOSImageIsKeptForNodeTypesAndTheRevisionsOfMachines(t *testing.T) {
	r := newRig(t)
	m := r.install("m1")
	r.awaitUser(r.revision, "1 Machine")
	r.delete(r.image)
	r.mustBeHeld(r.image, "1 NodeType")
	r.mustBeHeld(r.image, "1 NodeTypeRevision")
	other := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"osImageRef":{"name":"another"}}}`))
	if err := server.Client.Patch(t.Context(), r.nodeType.DeepCopy(), other); err != nil {
		t.Fatal(err)
	}
	r.await(r.image, "is kept for the Machine that has it on its disk", func() bool { return r.image.Status.UsedBy.Count == 1 })
	r.delete(m)
	r.awaitGone(r.image)
}

func TestADeletedNodeProviderIsKeptForItsHostsAndGivesItsNamespaceBack(t *testing.T) {
	r := newRig(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	owner := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"ingot.dev/node-provider":"`+r.name+`"}}}`))
	if err := server.Client.Patch(t.Context(), namespace, owner); err != nil {
		t.Fatal(err)
	}
	registered := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: "s1", Finalizers: []string{v1alpha1.HostFinalizer}}}
	claimed := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: "s2"}, Spec: metal3.BareMetalHostSpec{
		ConsumerRef: &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: r.name, Name: "m1", UID: "u1"},
	}}
	server.Create(t, registered, claimed, &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: "new"}})
	r.delete(r.provider)
	for _, user := range []string{"1 NodeType", "2 BareMetalHosts"} {
		r.mustBeHeld(r.provider, user)
	}
	r.delete(r.nodeType)
	r.delete(claimed)
	r.await(r.provider, "is kept for the host that is left", func() bool { return r.provider.Status.UsedBy.Count == 1 })
	if err := server.Client.Patch(t.Context(), registered, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	r.awaitGone(r.provider)
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil || namespace.Annotations[v1alpha1.AnnotationNodeProvider] != "" {
		t.Errorf("the namespace: %v, %v", namespace.Annotations, err)
	}
}

func TestADeletedRevisionAndItsRenderingAreKeptForTheMachinesThatHaveThem(t *testing.T) {
	r := newRig(t)
	m := r.install("m1")
	r.delete(r.revision)
	r.delete(r.rendering)
	r.mustBeHeld(r.revision, "1 Machine")
	r.mustBeHeld(r.rendering, "1 Machine")
	r.delete(m)
	r.awaitGone(r.revision)
	r.awaitGone(r.rendering)
}

// awaitCollector returns when the garbage collector knows all revisions and renderings with their owners. It sees the objects of a kind in the order
// in which they changed, so it knows them when it has deleted one that is made now and whose owner never existed.
//
// Without it: the collector, which watches each kind for itself, sees the deletion of the NodeType before the revision. The NodeType has nothing that
// a deletion in the foreground waits for then, and nobody deletes the revision while the NodeType is kept.
func (r *rig) awaitCollector() {
	r.t.Helper()
	nobody := func(kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: r.name + "-orphan", OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: "nobody", UID: types.UID(r.name)}}}
	}
	revision := &v1alpha1.NodeTypeRevision{ObjectMeta: nobody("NodeType"), Spec: r.revision.Spec}
	rendering := &v1alpha1.NodeTypeRendering{ObjectMeta: nobody("NodeTypeRevision"), Spec: r.rendering.Spec}
	server.Create(r.t, revision, rendering)
	r.awaitGone(revision)
	r.awaitGone(rendering)
}

func TestTheGarbageOfADeletedNodeTypeIsKeptForItsMachines(t *testing.T) {
	r := newRig(t)
	owned := func(o, owner client.Object, kind string) {
		t.Helper()
		isController, blocks := true, true
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &isController, BlockOwnerDeletion: &blocks}})
		if err := server.Client.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	r.await(r.revision, "is read", func() bool { return true })
	r.await(r.rendering, "is read", func() bool { return true })
	owned(r.revision, r.nodeType, "NodeType")
	owned(r.rendering, r.revision, "NodeTypeRevision")
	m := r.install("m1")
	r.awaitUser(r.nodeType, "1 Machine")
	r.awaitCollector()
	r.delete(r.nodeType, client.PropagationPolicy(metav1.DeletePropagationForeground))
	r.mustBeHeld(r.revision, "1 Machine")
	r.mustBeHeld(r.nodeType, "1 Machine")
	r.await(r.rendering, "is there", func() bool { return slices.Contains(r.rendering.Finalizers, v1alpha1.InUseFinalizer) })
	r.delete(m)
	for _, o := range []client.Object{r.nodeType, r.revision, r.rendering} {
		r.awaitGone(o)
	}
}

func TestAMachineThatWasMadeAMomentAgoKeepsItsNodeType(t *testing.T) {
	r := newRig(t)
	r.stop()
	// The deletion comes before anybody has counted the Machine: the policy would let it through.
	r.install("m1")
	r.delete(r.nodeType)
	r.await(r.nodeType, "is kept by its finalizer", func() bool { return r.nodeType.DeletionTimestamp != nil })
	if r.nodeType.Status.UsedBy != nil {
		t.Fatalf("it was counted: %v", r.nodeType.Status.UsedBy)
	}
	server.Run(t, func(mgr ctrl.Manager) error {
		return (&Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("inuse"), Clock: clock.RealClock{}}).SetupWithManager(mgr)
	})
	r.mustBeHeld(r.nodeType, "1 Machine")
}

func TestANumberOfUsersThatChangesIsWrittenEveryFewSeconds(t *testing.T) {
	r := newRig(t)
	r.stop()
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	controller := &Reconciler{Client: server.Client, APIReader: server.Client, Recorder: events.NewFakeRecorder(1000), Clock: now}
	mustCount := func(when string, machines int32) time.Duration {
		t.Helper()
		result, err := controller.Reconcile(t.Context(), everything)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(r.nodeType), r.nodeType); err != nil {
			t.Fatal(err)
		}
		if counted := r.nodeType.Status.UsedBy; counted == nil || counted.Count != machines {
			t.Errorf("%s: %v, expected %d Machines", when, counted, machines)
		}
		return result.RequeueAfter
	}
	r.install("m1")
	mustCount("the first user, which a deletion must know of", 1)
	r.install("m2")
	mustCount("the first change of the number", 2)
	r.install("m3")
	if pause := mustCount("the next one, at once", 2); pause != step.CountingInterval {
		t.Errorf("it is counted again after %s", pause)
	}
	now.SetTime(now.Now().Add(step.CountingInterval))
	if pause := mustCount("the next one, later", 3); pause != 0 {
		t.Errorf("it is counted again after %s", pause)
	}
	r.install("m4")
	r.delete(r.nodeType)
	mustCount("a NodeType that is being deleted", 4)
}
