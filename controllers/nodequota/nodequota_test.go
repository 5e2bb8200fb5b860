package nodequota

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// TestANodeTypeThatIsNotThereIsNamed limits a NodeType that is created later.
func TestANodeTypeThatIsNotThereIsNamed(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	server.Run(t, func(mgr ctrl.Manager) error {
		return (&Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: recorder, Clock: testingclock.NewFakePassiveClock(time.Now())}).SetupWithManager(mgr)
	})
	namespace := server.Namespace(t)
	limits := &v1alpha1.NodeQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.NodeQuotaName}, Spec: v1alpha1.NodeQuotaSpec{
		Machines: []v1alpha1.NodeTypeLimit{{NodeType: namespace, Limit: 2}},
	}}
	server.Create(t, limits)
	awaitNodeTypesKnown := func(reason string) *metav1.Condition {
		t.Helper()
		var found *metav1.Condition
		management.Eventually(t, "the condition has the reason "+reason, func() bool {
			if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(limits), limits); err != nil {
				t.Fatal(err)
			}
			found = meta.FindStatusCondition(limits.Status.Conditions, v1alpha1.ConditionNodeTypesKnown)
			return found != nil && found.Reason == reason
		})
		return found
	}
	c := awaitNodeTypesKnown(v1alpha1.ReasonNodeTypeUnknown)
	if c.Status != metav1.ConditionFalse || !strings.HasPrefix(c.Message, "there is no NodeType "+namespace+", so that its limit limits nothing: ") {
		t.Errorf("%+v", c)
	}
	management.Eventually(t, "an event warns", func() bool {
		return strings.HasPrefix(<-recorder.Events, "Warning NodeTypeUnknown there is no NodeType "+namespace)
	})
	server.Create(t, &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: v1alpha1.NodeTypeSpec{
		ProviderRef: v1alpha1.LocalReference{Name: "hall-1"}, OSImageRef: v1alpha1.LocalReference{Name: "debian"},
		HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu-model": "h100"}},
	}})
	if c := awaitNodeTypesKnown(v1alpha1.ReasonNodeTypesKnown); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
}

// TestAThousandMachinesThatAskAreDecidedAboutByFewWrites has the Machines' controller have written that they ask.
func TestAThousandMachinesThatAskAreDecidedAboutByFewWrites(t *testing.T) {
	const machines, limit = 1000, 600
	namespace := server.Namespace(t)
	for i := range machines {
		server.Create(t, asking(namespace, fmt.Sprintf("m-%04d", i)))
	}
	server.Create(t, limitOf(namespace, limit))
	requests := run(t)
	var q *v1alpha1.NodeQuota
	management.Eventually(t, "all are decided about", func() bool {
		q = quotaOf(t, namespace)
		return len(q.Status.Reservations) == limit && q.Status.Waiting == machines-limit
	})
	if n := requests.count(http.MethodPatch, "/nodequotas/"); n > 2 {
		t.Errorf("%d writes of the NodeQuota, want one, or two where the first decision came before the cache was full", n)
	}
	if n := requests.count(http.MethodGet, "/machines"); n > 4 { // the cache's own list and watch, and the first decision's look
		t.Errorf("%d reads of Machines", n)
	}
}

// TestAPlaceComesBackWhenItsMachineIsGone deletes the newest Machine: no Machine in the cache has reached the version in the NodeQuota then.
func TestAPlaceComesBackWhenItsMachineIsGone(t *testing.T) {
	namespace := server.Namespace(t)
	server.Create(t, limitOf(namespace, 1), asking(namespace, "first"))
	run(t)
	reserved := func(name string) bool {
		q := quotaOf(t, namespace)
		return len(q.Status.Reservations) == 1 && q.Status.Reservations[0].Machine == name
	}
	management.Eventually(t, "the first has a place", func() bool { return reserved("first") })
	server.Create(t, asking(namespace, "second"))
	management.Eventually(t, "the second waits", func() bool { return quotaOf(t, namespace).Status.Waiting == 1 })
	first := placed(t, namespace, "first")
	management.Eventually(t, "the first counts by its host", func() bool {
		q := quotaOf(t, namespace)
		return len(q.Status.Reservations) == 0 && q.Status.Machines[0].Used == 1
	})
	if reached := quotaOf(t, namespace).Status.MachinesResourceVersion; reached != first.ResourceVersion {
		t.Errorf("a cache must have reached %s, want %s", reached, first.ResourceVersion)
	}
	if err := server.Client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the second has its place", func() bool { return reserved("second") })
}

// TestACacheThatLagsGivesNoPlaceTwice has a decider whose cache stands still: it shows neither a Machine that has a place, nor the host of one.
func TestACacheThatLagsGivesNoPlaceTwice(t *testing.T) {
	namespace := server.Namespace(t)
	server.Create(t, limitOf(namespace, 2), asking(namespace, "late"))
	before := &v1alpha1.MachineList{}
	if err := server.Client.List(t.Context(), before, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	server.Create(t, asking(namespace, "hosted"), asking(namespace, "reserved"))
	hosted := placed(t, namespace, "hosted")
	reserved := &v1alpha1.Machine{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "reserved"}, reserved); err != nil {
		t.Fatal(err)
	}
	for name, reached := range map[string]string{"both are reserved": before.Items[0].ResourceVersion, "one has its host": hosted.ResourceVersion} {
		q := quotaOf(t, namespace)
		q.Status.Reservations = []v1alpha1.QuotaReservation{{Machine: "reserved", UID: string(reserved.UID), At: metav1.Now()}}
		if q.Status.MachinesResourceVersion = reached; reached != hosted.ResourceVersion {
			q.Status.Reservations = append(q.Status.Reservations, v1alpha1.QuotaReservation{Machine: "hosted", UID: string(hosted.UID), At: metav1.Now()})
		}
		if err := server.Client.Status().Update(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		decider := &Reconciler{Client: frozen{server.Client, before}, APIReader: server.Client, Recorder: events.NewFakeRecorder(10), Clock: clock.RealClock{}}
		if _, err := decider.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(q)}); err != nil {
			t.Fatal(err)
		}
		q = quotaOf(t, namespace)
		if len(q.Status.Reservations) != 1 || q.Status.Reservations[0].Machine != "reserved" || q.Status.Machines[0].Used != 2 || q.Status.Waiting != 1 {
			t.Errorf("%s: %+v", name, q.Status)
		}
	}
}

// TestAMachineThatWasCreatedAgainCountsByItsHost has a host that names it by the uid that it had before a restore.
func TestAMachineThatWasCreatedAgainCountsByItsHost(t *testing.T) {
	namespace := server.Namespace(t)
	restored := asking(namespace, "restored")
	restored.Status = v1alpha1.MachineStatus{}
	server.Create(t, restored, limitOf(namespace, 1), asking(namespace, "new"), &metal3.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server-1"},
		Spec: metal3.BareMetalHostSpec{ConsumerRef: &corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: namespace, Name: "restored", UID: "before",
		}},
	})
	run(t)
	management.Eventually(t, "the new one waits", func() bool { return quotaOf(t, namespace).Status.Waiting == 1 })
	if q := quotaOf(t, namespace); q.Status.Machines[0].Used != 1 || len(q.Status.Reservations) != 0 {
		t.Errorf("%+v", q.Status)
	}
}

// TestADeciderThatReadAnOldNodeQuotaWritesNothing has another decider give the only place away in between.
func TestADeciderThatReadAnOldNodeQuotaWritesNothing(t *testing.T) {
	namespace := server.Namespace(t)
	server.Create(t, limitOf(namespace, 1), asking(namespace, "m"))
	old := quotaOf(t, namespace)
	theirs := old.DeepCopy()
	theirs.Status.Reservations = []v1alpha1.QuotaReservation{{Machine: "other", UID: "other", At: metav1.Now()}}
	if err := server.Client.Status().Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	decider := &Reconciler{Client: frozen{server.Client, old}, APIReader: server.Client, Recorder: events.NewFakeRecorder(10), Clock: clock.RealClock{}}
	if _, err := decider.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(old)}); err != nil {
		t.Fatal(err)
	}
	if q := quotaOf(t, namespace); q.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("written by what was read before: %+v", q.Status)
	}
}

// frozen is a client whose cache stands still: it shows those Machines, or that NodeQuota.
type frozen struct {
	client.Client
	shown runtime.Object
}

func (f frozen) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	machines, isMachines := into.(*v1alpha1.MachineList)
	shown, isShown := f.shown.(*v1alpha1.MachineList)
	if !isMachines || !isShown {
		return f.Client.List(ctx, into, options...)
	}
	shown.DeepCopyInto(machines)
	return nil
}

func (f frozen) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	quota, isQuota := into.(*v1alpha1.NodeQuota)
	shown, isShown := f.shown.(*v1alpha1.NodeQuota)
	if !isQuota || !isShown {
		return f.Client.Get(ctx, key, into, options...)
	}
	shown.DeepCopyInto(quota)
	return nil
}

// run runs the controller, and records its requests.
func run(t *testing.T) *requests {
	t.Helper()
	recorded := &requests{}
	observed := &management.Server{Cluster: server.Cluster, Config: rest.CopyConfig(server.Config), Scheme: server.Scheme, Client: server.Client}
	observed.Config.Wrap(recorded.wrap)
	observed.Run(t, func(mgr ctrl.Manager) error {
		return (&Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: events.NewFakeRecorder(100), Clock: clock.RealClock{}}).SetupWithManager(mgr)
	})
	return recorded
}

// requests are those that a controller has sent.
type requests struct {
	mu   sync.Mutex
	sent []string
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(q *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.sent = append(r.sent, q.Method+" "+q.URL.Path)
		r.mu.Unlock()
		return next.RoundTrip(q)
	})
}

func (r *requests) count(method, path string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sent := range r.sent {
		if strings.HasPrefix(sent, method) && strings.Contains(sent, path) {
			n++
		}
	}
	return n
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// limitOf returns a NodeQuota that limits the Machines of the NodeType h100.
func limitOf(namespace string, limit int32) *v1alpha1.NodeQuota {
	return &v1alpha1.NodeQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.NodeQuotaName}, Spec: v1alpha1.NodeQuotaSpec{
		Machines: []v1alpha1.NodeTypeLimit{{NodeType: "h100", Limit: limit}},
	}}
}

// asking returns a Machine of the NodeType h100 that asks for a place.
func asking(namespace, name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}},
		Status: v1alpha1.MachineStatus{Phase: v1alpha1.MachinePending, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionClaimed, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClaiming, LastTransitionTime: metav1.Now(),
		}}},
	}
}

// placed writes that the Machine has a host.
func placed(t *testing.T, namespace, name string) *v1alpha1.Machine {
	t.Helper()
	m := &v1alpha1.Machine{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, m); err != nil {
		t.Fatal(err)
	}
	m.Status.Phase, m.Status.HostRef = v1alpha1.MachineProvisioning, &v1alpha1.NamespacedReference{Namespace: namespace, Name: name}
	if err := server.Client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func quotaOf(t *testing.T, namespace string) *v1alpha1.NodeQuota {
	t.Helper()
	q := &v1alpha1.NodeQuota{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha1.NodeQuotaName}, q); err != nil {
		t.Fatal(err)
	}
	return q
}
