package tenantaccess

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/drain"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/tenantcalls"
)

// makeCall makes each call that the manager makes for a reconcile, as its controllers do. What is not here is called by the client set
// itself.
var makeCall = map[tenantcalls.Call]func(context.Context, *Access) error{
	{Verb: "get", Resource: "nodes"}: func(ctx context.Context, a *Access) error {
		return a.Client.Get(ctx, client.ObjectKey{Name: "n"}, &corev1.Node{})
	},
	{Verb: "patch", Resource: "nodes"}: func(ctx context.Context, a *Access) error {
		return a.Client.Patch(ctx, named(&corev1.Node{}), client.RawPatch(types.MergePatchType, []byte("{}")))
	},
	{Verb: "delete", Resource: "nodes"}: func(ctx context.Context, a *Access) error { return a.Client.Delete(ctx, named(&corev1.Node{})) },
	{Verb: "list", Resource: "secrets"}: func(ctx context.Context, a *Access) error {
		_, err := a.Clientset.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{Limit: 16})
		return err
	},
	{Verb: "create", Resource: "secrets"}: func(ctx context.Context, a *Access) error { return a.Client.Create(ctx, named(&corev1.Secret{})) },
	{Verb: "patch", Resource: "secrets"}: func(ctx context.Context, a *Access) error {
		return a.Client.Patch(ctx, named(&corev1.Secret{}), client.RawPatch(types.MergePatchType, []byte("{}")))
	},
	{Verb: "delete", Resource: "secrets"}: func(ctx context.Context, a *Access) error { return a.Client.Delete(ctx, named(&corev1.Secret{})) },
	{Verb: "list", Resource: "pods"}: func(ctx context.Context, a *Access) error {
		helper := &drain.Helper{Ctx: ctx, Client: a.Clientset, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, ChunkSize: 50, Out: io.Discard, ErrOut: io.Discard}
		_, errs := helper.GetPodsForDeletion("n")
		return errors.Join(errs...)
	},
	{Verb: "get", Resource: "pods"}: func(ctx context.Context, a *Access) error {
		return a.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "p"}, &corev1.Pod{})
	},
	{Verb: "create", Resource: "pods"}: func(ctx context.Context, a *Access) error { return a.Client.Create(ctx, inDefault(&corev1.Pod{})) },
	{Verb: "delete", Resource: "pods"}: func(ctx context.Context, a *Access) error { return a.Client.Delete(ctx, inDefault(&corev1.Pod{})) },
	{Verb: "create", Resource: "resourceclaims"}: func(ctx context.Context, a *Access) error {
		return a.Client.Create(ctx, inDefault(&resourcev1.ResourceClaim{}))
	},
	{Verb: "delete", Resource: "resourceclaims"}: func(ctx context.Context, a *Access) error {
		return a.Client.Delete(ctx, inDefault(&resourcev1.ResourceClaim{}))
	},
	{Verb: "create", Resource: "pods/eviction"}: func(ctx context.Context, a *Access) error {
		return a.Clientset.PolicyV1().Evictions("default").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}})
	},
	{Verb: "list", Resource: "poddisruptionbudgets"}: func(ctx context.Context, a *Access) error {
		_, err := a.Clientset.PolicyV1().PodDisruptionBudgets("default").List(ctx, metav1.ListOptions{Limit: 200})
		return err
	},
	{Verb: "get", Resource: "certificatesigningrequests"}: func(ctx context.Context, a *Access) error {
		return a.Client.Get(ctx, client.ObjectKey{Name: "n"}, &certificatesv1.CertificateSigningRequest{})
	},
	{Verb: "update", Resource: "certificatesigningrequests/approval"}: func(ctx context.Context, a *Access) error {
		_, err := a.Clientset.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, "n", named(&certificatesv1.CertificateSigningRequest{}), metav1.UpdateOptions{})
		return err
	},
	{Verb: "list", Resource: "daemonsets"}: func(ctx context.Context, a *Access) error { _, err := a.DaemonSets(ctx); return err },
	{Verb: "get", Resource: "deviceclasses"}: func(ctx context.Context, a *Access) error {
		return a.Client.Get(ctx, client.ObjectKey{Name: "c"}, &resourcev1.DeviceClass{})
	},
	{Verb: "list", Resource: "deviceclasses"}: listPages(func() *resourcev1.DeviceClassList { return &resourcev1.DeviceClassList{} }),
	{Verb: "patch", Resource: "deviceclasses"}: func(ctx context.Context, a *Access) error {
		return a.Client.Patch(ctx, named(&resourcev1.DeviceClass{}), client.RawPatch(types.MergePatchType, []byte("{}")))
	},
	{Verb: "delete", Resource: "deviceclasses"}: func(ctx context.Context, a *Access) error {
		return a.Client.Delete(ctx, named(&resourcev1.DeviceClass{}))
	},
	{Verb: "get", Resource: "resourcequotas"}: func(ctx context.Context, a *Access) error {
		return a.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "n"}, &corev1.ResourceQuota{})
	},
	{Verb: "list", Resource: "resourcequotas"}: listPages(func() *corev1.ResourceQuotaList { return &corev1.ResourceQuotaList{} }),
	{Verb: "patch", Resource: "resourcequotas"}: func(ctx context.Context, a *Access) error {
		return a.Client.Patch(ctx, inDefault(&corev1.ResourceQuota{}), client.RawPatch(types.MergePatchType, []byte("{}")))
	},
	{Verb: "delete", Resource: "resourcequotas"}: func(ctx context.Context, a *Access) error {
		return a.Client.Delete(ctx, inDefault(&corev1.ResourceQuota{}))
	},
	{Verb: "get", Resource: "validatingadmissionpolicies"}: func(ctx context.Context, a *Access) error {
		return a.Client.Get(ctx, client.ObjectKey{Name: "n"}, &admissionv1.ValidatingAdmissionPolicy{})
	},
	{Verb: "list", Resource: "validatingadmissionpolicies"}: listPages(func() *admissionv1.ValidatingAdmissionPolicyList { return &admissionv1.ValidatingAdmissionPolicyList{} }),
	{Verb: "patch", Resource: "validatingadmissionpolicies"}: func(ctx context.Context, a *Access) error {
		return a.Client.Patch(ctx, named(&admissionv1.ValidatingAdmissionPolicy{}), client.RawPatch(types.MergePatchType, []byte("{}")))
	},
	{Verb: "delete", Resource: "validatingadmissionpolicies"}: func(ctx context.Context, a *Access) error {
		return a.Client.Delete(ctx, named(&admissionv1.ValidatingAdmissionPolicy{}))
	},
	{Verb: "get", Resource: "validatingadmissionpolicybindings"}: func(ctx context.Context, a *Access) error {
		return a.Client.Get(ctx, client.ObjectKey{Name: "n"}, &admissionv1.ValidatingAdmissionPolicyBinding{})
	},
	{Verb: "list", Resource: "validatingadmissionpolicybindings"}: listPages(func() *admissionv1.ValidatingAdmissionPolicyBindingList {
		return &admissionv1.ValidatingAdmissionPolicyBindingList{}
	}),
	{Verb: "patch", Resource: "validatingadmissionpolicybindings"}: func(ctx context.Context, a *Access) error {
		return a.Client.Patch(ctx, named(&admissionv1.ValidatingAdmissionPolicyBinding{}), client.RawPatch(types.MergePatchType, []byte("{}")))
	},
	{Verb: "delete", Resource: "validatingadmissionpolicybindings"}: func(ctx context.Context, a *Access) error {
		return a.Client.Delete(ctx, named(&admissionv1.ValidatingAdmissionPolicyBinding{}))
	},
	{Verb: "list", Resource: "namespaces"}: listPages(func() *corev1.NamespaceList { return &corev1.NamespaceList{} }),
	{Verb: "list", Resource: "events"}:     listPages(func() *corev1.EventList { return &corev1.EventList{} }),
	{Verb: "create", Resource: "events"}:   func(ctx context.Context, a *Access) error { return a.Client.Create(ctx, inDefault(&corev1.Event{})) },
}

// listPages reads a list page by page.
func listPages[L client.ObjectList](newPage func() L) func(context.Context, *Access) error {
	return func(ctx context.Context, a *Access) error { return EachPage(ctx, a.Client, newPage, func(L) {}) }
}

func inDefault[T client.Object](o T) T {
	o.SetName("n")
	o.SetNamespace("default")
	return o
}

func named[T client.Object](o T) T {
	o.SetName("n")
	if _, ok := any(o).(*corev1.Secret); ok {
		o.SetNamespace("kube-system")
	}
	return o
}

// listKinds are the kinds of the resources that are listed, with their versions.
var listKinds = map[string][2]string{
	"nodes": {"Node", "v1"}, "resourceslices": {"ResourceSlice", "resource.k8s.io/v1"}, "secrets": {"Secret", "v1"}, "pods": {"Pod", "v1"},
	"poddisruptionbudgets": {"PodDisruptionBudget", "policy/v1"}, "daemonsets": {"DaemonSet", "apps/v1"},
	"certificatesigningrequests": {"CertificateSigningRequest", "certificates.k8s.io/v1"}, "resourceclaims": {"ResourceClaim", "resource.k8s.io/v1"},
	"namespaces": {"Namespace", "v1"}, "events": {"Event", "v1"},
	"deviceclasses":                     {"DeviceClass", "resource.k8s.io/v1"},
	"resourcequotas":                    {"ResourceQuota", "v1"},
	"validatingadmissionpolicies":       {"ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1"},
	"validatingadmissionpolicybindings": {"ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1"},
}

// endless is one way in which a tenant answers without end.
type endless struct {
	name string
	// fits tells whether the way makes sense for a call.
	fits func(tenantcalls.Call) bool
	// write answers a request. It ends when a write fails.
	write func(w http.ResponseWriter, call tenantcalls.Call)
	// isCut is true if the manager takes only the beginning and goes on without the rest.
	isCut func(tenantcalls.Call) bool
}

func always(tenantcalls.Call) bool { return true }
func never(tenantcalls.Call) bool  { return false }
func isList(c tenantcalls.Call) bool {
	return c.Verb == "list"
}

var endlessWays = []endless{
	{"one value", always, func(w http.ResponseWriter, c tenantcalls.Call) {
		repeat(w, `{"kind":"`+listKinds[c.Resource][0]+`","metadata":{"labels":{`, func(i int) string { return fmt.Sprintf(`"k%d":"v",`, i) })
	}, never},
	{"compressed", always, func(w http.ResponseWriter, _ tenantcalls.Call) {
		w.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		repeat(compressed, `{"metadata":{"name":"`, func(int) string { return strings.Repeat("x", 1<<20) })
	}, never},
	{"a refusal", always, func(w http.ResponseWriter, _ tenantcalls.Call) {
		w.WriteHeader(http.StatusInternalServerError)
		repeat(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"`, func(int) string { return strings.Repeat("x", 8<<10) })
	}, never},
	{"empty items", isList, func(w http.ResponseWriter, c tenantcalls.Call) {
		repeat(w, `{"kind":"`+listKinds[c.Resource][0]+`List","apiVersion":"`+listKinds[c.Resource][1]+`","items":[`, func(int) string { return strings.Repeat("{},", 1000) })
	}, never},
	{"pages", isList, func(w http.ResponseWriter, c tenantcalls.Call) {
		first := pages.Add(1)
		fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"1","continue":"more"},"items":[`, listKinds[c.Resource][0], listKinds[c.Resource][1])
		for i := range 50 {
			fmt.Fprintf(w, `{"metadata":{"name":"n-%d-%d","namespace":"default","labels":{"text":"%s"}}},`, first, i, strings.Repeat("x", 60))
		}
		fmt.Fprint(w, `{"metadata":{"name":"last"}}]}`)
	}, func(c tenantcalls.Call) bool {
		return c.Resource == "secrets" || c.Resource == "poddisruptionbudgets" || c.Resource == "daemonsets"
	}},
	{"events", func(c tenantcalls.Call) bool { return c.Verb == "watch" }, func(w http.ResponseWriter, c tenantcalls.Call) {
		kind := listKinds[c.Resource]
		repeat(w, "", func(i int) string {
			return fmt.Sprintf(`{"type":"ADDED","object":{"kind":"%s","apiVersion":"%s","metadata":{"name":"n%d","resourceVersion":"%d","labels":{"text":"x"}}}}`+"\n", kind[0], kind[1], i, i+1)
		})
	}, never},
}

var pages atomic.Int64

// written counts what the server could write.
var written atomic.Int64

// repeat writes the head, and then pieces until a write fails.
func repeat(w io.Writer, head string, piece func(int) string) {
	if _, err := io.WriteString(w, head); err != nil {
		return
	}
	for i := 0; ; i++ {
		n, err := io.WriteString(w, piece(i))
		written.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// enough is more than the manager reads of any answer. What was written beyond the limits is in the buffers of the connection.
const enough = 64 << 20

func TestNoCallOfATenantThatAnswersWithoutEndFillsTheMemory(t *testing.T) {
	const budget = 2 << 20
	r := newRegistry(t, Options{Memory: budget, ProbeInterval: 20 * time.Millisecond})
	other := types.NamespacedName{Namespace: "good", Name: "other"}
	if err := r.Set(t.Context(), other, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	usable(t, r, other)
	for _, call := range tenantcalls.All {
		for _, way := range endlessWays {
			if !way.fits(call) {
				continue
			}
			t.Run(call.Verb+" "+strings.TrimPrefix(call.Resource, "/")+" "+way.name, func(t *testing.T) {
				answerWithoutEnd(t, r, call, way)
				if _, err := r.For(other); err != nil {
					t.Errorf("another tenant notices: %v", err)
				}
			})
		}
	}
}

// answerWithoutEnd makes a tenant that answers one call without end and all others as it should, and sees to it that it is lost.
func answerWithoutEnd(t *testing.T, r *Registry, call tenantcalls.Call, way endless) {
	var isPoisoned atomic.Bool
	do := makeCall[call]
	isPoisoned.Store(do == nil)
	inner := gatekeeper(t, func(string) int { return 0 })
	proxy, ca := newTLSServer(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch {
		case isPoisoned.Load() && tenantcalls.Of(request) == call:
			w.Header().Set("Content-Type", "application/json")
			way.write(w, call)
		case call.Verb == "list" && request.URL.Query().Has("sendInitialEvents"):
			// As a server that is too old for it, so that the objects are listed.
			refused := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
			http.Error(w, refused.Error(), http.StatusUnprocessableEntity)
		default:
			inner.ServeHTTP(w, request)
		}
	}))
	key := types.NamespacedName{Namespace: "bad", Name: "endless"}
	written.Store(0)
	before := heap()
	r.WatchRequests(key, true)
	r.WatchClaims(key, true)
	if err := r.Set(t.Context(), key, configOf(proxy.URL, ca, "", "token: a")); err != nil {
		t.Fatal(err)
	}
	defer r.Remove(key)
	switch {
	case do != nil:
	case call.Resource == "certificatesigningrequests":
		checkWithout(t, r, key, before, requestKind)
		return
	case call.Resource == "resourceclaims":
		checkWithout(t, r, key, before, claimKind)
		return
	}
	if do != nil {
		access := usable(t, r, key)
		isPoisoned.Store(true)
		ctx, end := withRound(t.Context())
		err := do(ctx, access)
		end()
		if way.isCut(call) {
			if err != nil {
				t.Error(err)
			}
			return
		}
		if err == nil {
			t.Error("the call has an answer")
		}
	}
	var err error
	defer func() { t.Log(err) }()
	eventually(t, "the tenant is lost, with the reason", func() bool {
		_, err = r.For(key)
		return reasonOf(err) == v1alpha1.ReasonTenantTooLarge
	})
	set := r.tenants[key].clients
	eventually(t, "nothing of it is kept", func() bool {
		set.account.book.mu.Lock()
		defer set.account.book.mu.Unlock()
		return len(set.account.kept) == 0 && set.account.arriving == 0 && set.nodes == nil && set.slices == nil
	})
	if way.name != "compressed" && written.Load() > enough {
		t.Errorf("%d bytes were taken from it", written.Load())
	}
	eventually(t, "its memory is let go", func() bool { return heap()-before < 16<<20 })
}

// TestAnAnswerWithoutEndToASpareCallIsNothingMore: tenants make pods as large and as many as they like, and the cluster with all others is used on.
func TestAnAnswerWithoutEndToASpareCallIsNothingMore(t *testing.T) {
	r := newRegistry(t, Options{Memory: 2 << 20, ProbeInterval: 20 * time.Millisecond})
	call := tenantcalls.Call{Verb: "list", Resource: "pods"}
	inner := gatekeeper(t, func(string) int { return 0 })
	for _, way := range endlessWays {
		if !way.fits(call) {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			proxy, ca := newTLSServer(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if tenantcalls.Of(request) == call {
					w.Header().Set("Content-Type", "application/json")
					way.write(w, call)
					return
				}
				inner.ServeHTTP(w, request)
			}))
			key := types.NamespacedName{Namespace: "bad", Name: "spare"}
			if err := r.Set(t.Context(), key, configOf(proxy.URL, ca, "", "token: a")); err != nil {
				t.Fatal(err)
			}
			defer r.Remove(key)
			access := usable(t, r, key)
			if err := EachSparePage(t.Context(), access, func() *corev1.PodList { return &corev1.PodList{} }, func(*corev1.PodList) {}); err == nil {
				t.Error("the call has an answer")
			}
			if _, err := r.For(key); err != nil {
				t.Errorf("the tenant is not used any more: %v", err)
			}
		})
	}
}

// checkWithout sees to it that a tenant is used without the objects of an optional kind, and that nothing is kept of them: nodes and tenants create them.
func checkWithout(t *testing.T, r *Registry, key types.NamespacedName, before int64, of kind) {
	t.Helper()
	var last OptionalWatch
	var refused error
	defer func() { t.Logf("%+v %v", last, refused) }()
	eventually(t, "the tenant is used without them", func() bool {
		access, err := r.For(key)
		if refused = err; err != nil {
			return false
		}
		if last = access.ServingRequests; of.plural == claimKind.plural {
			last = access.WatchedClaims
		}
		return !last.Watched && strings.Contains(last.Problem, "they are not watched, and are tried again after")
	})
	set := r.tenants[key].clients
	eventually(t, "nothing is kept of them", func() bool {
		set.account.book.mu.Lock()
		defer set.account.book.mu.Unlock()
		_, isKept := set.account.kept[of.plural]
		// The watch of Nodes goes on, and counts its last event.
		return !isKept && set.account.arriving < 64<<10
	})
	eventually(t, "their memory is let go", func() bool { return heap()-before < 16<<20 })
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
