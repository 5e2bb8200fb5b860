package nodeprovider

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

func provider(name, namespace string) *v1alpha1.NodeProvider {
	return &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeProviderSpec{
		HostNamespace: namespace, Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "10.20.0.2"}},
	}}
}

// limited is a client that changes Namespaces as a user without any right.
type limited struct {
	client.Client
	nobody client.Client
}

func (l limited) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if _, isNamespace := o.(*corev1.Namespace); isNamespace {
		return l.nobody.Patch(ctx, o, patch, options...)
	}
	return l.Client.Patch(ctx, o, patch, options...)
}

// reviewed is a client that asks for its rights as a user without any.
type reviewed struct {
	client.Client
	nobody client.Client
}

func (r reviewed) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if _, isReview := o.(*authorizationv1.SelfSubjectAccessReview); isReview {
		return r.nobody.Create(ctx, o, options...)
	}
	return r.Client.Create(ctx, o, options...)
}

func run(t *testing.T, wrap func(client.Client) client.Client) (stop func()) {
	t.Helper()
	return server.Run(t, func(mgr ctrl.Manager) error {
		return (&Reconciler{Client: wrap(mgr.GetClient()), Recorder: mgr.GetEventRecorder("nodeprovider"), Clock: clock.RealClock{}, CheckBoot: func(context.Context, v1alpha1.NetbootSpec) error { return nil },
			CheckInstaller: func(context.Context, *v1alpha1.NodeProvider) (string, error) { return "", nil }}).SetupWithManager(mgr)
	})
}

func asItIs(c client.Client) client.Client { return c }

func await(t *testing.T, name, reason, says string) {
	t.Helper()
	var stored v1alpha1.NodeProvider
	management.Eventually(t, name+" has the reason "+reason, func() bool {
		if err := server.Client.Get(t.Context(), client.ObjectKey{Name: name}, &stored); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == reason && (c.Status == metav1.ConditionTrue) == (reason == v1alpha1.ReasonReady) && strings.Contains(c.Message, says)
	})
}

func owner(t *testing.T, namespace string) string {
	t.Helper()
	var stored corev1.Namespace
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: namespace}, &stored); err != nil {
		t.Fatal(err)
	}
	return stored.Annotations[v1alpha1.AnnotationNodeProvider]
}

func TestANodeProviderClaimsItsHostNamespaceAlone(t *testing.T) {
	run(t, asItIs)
	namespace := server.Namespace(t)
	// There is no NodeType and no OSImage.
	server.Create(t, provider("alone-1", namespace))
	await(t, "alone-1", v1alpha1.ReasonReady, namespace)
	if got := owner(t, namespace); got != "alone-1" {
		t.Errorf("the namespace belongs to %q", got)
	}
	server.Create(t, provider("alone-2", namespace))
	await(t, "alone-2", v1alpha1.ReasonHostNamespaceTaken, "alone-1")

	server.Create(t, provider("alone-3", namespace+"-later"))
	await(t, "alone-3", v1alpha1.ReasonHostNamespaceNotFound, namespace+"-later")
	server.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-later"}})
	await(t, "alone-3", v1alpha1.ReasonReady, "")

	// A claim that somebody removed is made again.
	stored := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := server.Client.Patch(t.Context(), stored, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":null}}`))); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "it is claimed again", func() bool { return owner(t, namespace) != "" })
}

func TestTheNamespaceOfABaremetalOperatorIsClaimedForMetal3Alone(t *testing.T) {
	run(t, asItIs)
	namespace := server.Namespace(t)
	server.Create(t, &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s1", Finalizers: []string{metal3.BareMetalHostFinalizer}}})
	server.Create(t, provider("foreign-1", namespace))
	await(t, "foreign-1", v1alpha1.ReasonHostNamespaceTaken, namespace+"/s1")
	if got := owner(t, namespace); got != "" {
		t.Errorf("the namespace belongs to %q", got)
	}
	served := provider("foreign-2", namespace)
	served.Spec.Redfish, served.Spec.Metal3 = nil, &v1alpha1.Metal3Provider{}
	server.Create(t, served)
	await(t, "foreign-2", v1alpha1.ReasonReady, "")
	await(t, "foreign-1", v1alpha1.ReasonHostNamespaceTaken, "foreign-2")
}

// TestProvidersOfEveryKindLiveSideBySide has two sites of baremetal-operators and one of Ingot's own.
func TestProvidersOfEveryKindLiveSideBySide(t *testing.T) {
	run(t, asItIs)
	for _, name := range []string{"beside-1", "beside-2"} {
		namespace := server.Namespace(t)
		server.Create(t, &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s1", Finalizers: []string{metal3.BareMetalHostFinalizer}}})
		served := provider(name, namespace)
		served.Spec.Redfish, served.Spec.Metal3 = nil, &v1alpha1.Metal3Provider{}
		server.Create(t, served)
		defer func() {
			if got := owner(t, namespace); got != name {
				t.Errorf("the namespace of %s belongs to %q", name, got)
			}
		}()
	}
	server.Create(t, provider("beside-3", server.Namespace(t)))
	for _, name := range []string{"beside-1", "beside-2", "beside-3"} {
		await(t, name, v1alpha1.ReasonReady, "")
	}
}

func TestANamespaceThatABaremetalOperatorHasLeftIsClaimed(t *testing.T) {
	run(t, asItIs)
	namespace := server.Namespace(t)
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s1", Finalizers: []string{metal3.BareMetalHostFinalizer}}}
	server.Create(t, host)
	server.Create(t, provider("left-1", namespace))
	await(t, "left-1", v1alpha1.ReasonHostNamespaceTaken, namespace+"/s1")
	if err := server.Client.Patch(t.Context(), host, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	await(t, "left-1", v1alpha1.ReasonReady, "")
}

func TestAClaimThatIsNotAllowedIsReportedAndHealsItself(t *testing.T) {
	namespace, nobody := server.Namespace(t), newNobody(t)
	stop := run(t, func(c client.Client) client.Client { return limited{c, nobody} })
	server.Create(t, provider("denied-1", namespace))
	await(t, "denied-1", v1alpha1.ReasonHostNamespaceDenied, "bind ClusterRole ingot-manager-hosts")
	stop()
	run(t, asItIs)
	await(t, "denied-1", v1alpha1.ReasonReady, "")
}

// newNobody returns a client of a user without any right.
func newNobody(t *testing.T) client.Client {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	config.Impersonate.UserName = "nobody"
	nobody, err := client.New(config, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return nobody
}

func TestAManagerThatMayDriveNoHostsSaysSo(t *testing.T) {
	nobody := newNobody(t)
	run(t, func(c client.Client) client.Client { return reviewed{c, nobody} })
	server.Create(t, provider("limited-1", server.Namespace(t)))
	await(t, "limited-1", v1alpha1.ReasonManagerLimited, "Install it without that component")
	served := provider("limited-2", server.Namespace(t))
	served.Spec.Redfish, served.Spec.Metal3 = nil, &v1alpha1.Metal3Provider{}
	server.Create(t, served)
	await(t, "limited-2", v1alpha1.ReasonReady, "")
}

func TestAManagerThatLosesItsRightsSaysSo(t *testing.T) {
	server.Create(t, provider("limited-3", server.Namespace(t)))
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	r := &Reconciler{Client: server.Client, Recorder: events.NewFakeRecorder(100), Clock: clock, CheckBoot: func(context.Context, v1alpha1.NetbootSpec) error { return nil }}
	for _, c := range []struct {
		client client.Client
		reason string
		pause  time.Duration
	}{{server.Client, v1alpha1.ReasonReady, rightsInterval}, {reviewed{server.Client, newNobody(t)}, v1alpha1.ReasonManagerLimited, permissionRecheckInterval}, {server.Client, v1alpha1.ReasonReady, bootInterval - permissionRecheckInterval}} {
		r.Client = c.client
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "limited-3"}})
		if err != nil || result.RequeueAfter != c.pause {
			t.Errorf("%s: again after %s, %v", c.reason, result.RequeueAfter, err)
		}
		await(t, "limited-3", c.reason, "")
		clock.SetTime(clock.Now().Add(c.pause))
	}
}
