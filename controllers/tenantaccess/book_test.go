package tenantaccess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/tenantcalls"
)

func TestEachBoundOfAPoolRefusesOnlyThoseWhoExceedIt(t *testing.T) {
	// The floor is 10: a quarter of 320, divided among eight.
	p := newPool(60, 100, 320)
	type holding = map[string]int64
	for _, c := range []struct {
		name       string
		held       holding
		namespaces int
		own, added int64
		want       bound
	}{
		{"a cluster up to its budget", nil, 1, 50, 10, noBound},
		{"a cluster beyond its budget", nil, 1, 50, 11, clusterBound},
		{"a namespace up to its limit", holding{"a": 90}, 1, 0, 10, noBound},
		{"a namespace beyond its limit", holding{"a": 90}, 1, 0, 11, namespaceBound},
		{"another namespace is at its limit", holding{"b": 100}, 2, 0, 60, noBound},
		{"all but the reserve is taken", holding{"a": 30, "b": 100, "c": 100, "d": 50}, 4, 0, 1, totalBound},
		{"and a small namespace has its floor", holding{"b": 100, "c": 100, "d": 100}, 4, 0, 10, noBound},
		{"and no more", holding{"b": 100, "c": 100, "d": 70}, 4, 0, 11, totalBound},
		{"the floors are smaller if there are more namespaces", holding{"b": 100, "c": 100, "d": 90}, 16, 0, 6, totalBound},
		{"but are there", holding{"b": 100, "c": 100, "d": 90}, 16, 0, 5, noBound},
		{"less is always possible", holding{"a": 200, "b": 200}, 2, 90, -1, noBound},
	} {
		p.held, p.namespaces = c.held, c.namespaces
		if got := p.refuses(c.own, "a", c.added); got != c.want {
			t.Errorf("%s: got bound %d, want %d", c.name, got, c.want)
		}
	}
}

func TestWhatIsRefusedIsInNobodysWayAndEveryMessageSaysWhoMustDoWhat(t *testing.T) {
	b := newBook(1<<20, 0)
	var err error
	for i := range 2 {
		if err = b.open("a", nil).keep("Nodes", 1, 1<<20); (err == nil) != (i == 0) {
			t.Errorf("cluster %d of a namespace whose limit is a budget and a half: %v", i, err)
		}
	}
	says := func(err error, what ...string) {
		t.Helper()
		text := fmt.Sprint(err)
		if cause := tooLarge(err); cause != nil {
			text += ": " + cause.advice()
		}
		for _, each := range what {
			if !strings.Contains(text, each) {
				t.Errorf("%q does not say %q", text, each)
			}
		}
	}
	says(err, "all TenantClusters of namespace a is 2.0 MiB", "limit together is 1.5 MiB", "must delete TenantClusters")
	if held := b.kept.held["a"]; held != 1<<20 {
		t.Errorf("%d bytes are counted of a namespace, with those that were refused", held)
	}
	for i := range 2 {
		err = b.open(fmt.Sprint("b", i), nil).keep("Nodes", 1, 1<<20)
	}
	says(err, "all that is kept of all tenants is 3.0 MiB", "the limit is 3.0 MiB (from GOMEMLIMIT)", "administrator must raise the memory of the manager")
	says(b.open("c", nil).keep("Nodes", 1, 2<<20), "its budget is 1.0 MiB (tenants.memory", "raise tenants.memory")
	x, y := b.open("x", nil), b.open("x", nil)
	says(x.receive(3<<20), "more than 2.0 MiB")
	if err = x.receive(2 << 20); err != nil {
		t.Error(err)
	}
	err = y.receive(1)
	if says(err, "no room for an answer now", "all that is being worked on of all TenantClusters of namespace x is 2.0 MiB", "the request is repeated"); !isCrowded(err) || tooLarge(err) != nil {
		t.Errorf("the tenant would be lost because of another one: %v", err)
	}
	x.release(2 << 20)
	if err = y.receive(1); err != nil {
		t.Error(err)
	}
	y.release(1)
	says(x.receiveOptional(1<<20+1), "more than 1.0 MiB")
	if err = errors.Join(x.receiveOptional(1<<20), x.receiveOptional(1)); tooLarge(err) == nil || x.arriving != 1<<20 {
		t.Errorf("%d bytes are taken of what the cluster is used without: %v", x.arriving, err)
	}
	if err = x.receive(1 << 18); err != nil {
		t.Errorf("what the cluster is not used without finds no room beside it: %v", err)
	}
	if err = errors.Join(x.receiveOptional(-1<<20), x.receiveOptional(1<<20)); err != nil {
		t.Error(err)
	}
	if x.close(); len(b.tenants) != 5 {
		t.Errorf("%d namespaces are known", len(b.tenants))
	}
	if y.close(); len(b.tenants) != 4 {
		t.Errorf("%d namespaces are known after the last cluster of one is gone", len(b.tenants))
	}
}

// TestWhatIsTakenFromTenantsFitsIntoTheManagersPod: with the settings that are shipped, the tenants cannot bring the manager beyond its
// limit, at which the kernel kills it.
func TestWhatIsTakenFromTenantsFitsIntoTheManagersPod(t *testing.T) {
	text, err := os.ReadFile("../../config/manager/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &deployment); err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	limit := resource.MustParse(strings.TrimSuffix(container.Env[0].Value, "B"))
	if container.Env[0].Name != "GOMEMLIMIT" || limit.Value() >= container.Resources.Limits.Memory().Value() {
		t.Fatalf("GOMEMLIMIT is %s", limit.String())
	}
	b := newBook(DefaultMemory, TotalMemory(limit.Value()))
	if sum := managerMemory + b.kept.total + b.arriving.total/weightFactor; sum > limit.Value() {
		t.Errorf("the manager, and what it takes from tenants, need %s, and GOMEMLIMIT is %s", mebibytes(sum), mebibytes(limit.Value()))
	}
	if b.kept.cluster != DefaultMemory || b.kept.namespace > 2*DefaultMemory || b.kept.namespace < DefaultMemory || b.arriving.cluster != 2*DefaultMemory {
		t.Errorf("with the shipped settings a cluster has %s and a namespace %s", mebibytes(b.kept.cluster), mebibytes(b.kept.namespace))
	}
	if TotalMemory(1<<63-1) != 0 || TotalMemory(100<<20) != 50<<20 {
		t.Error("without GOMEMLIMIT, or with a small one, the tenants have another part")
	}
}

// hostileNodes serves so many Nodes, of which each takes some kilobytes, in one list.
func hostileNodes(w http.ResponseWriter, count int) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)
	for i := range count {
		var labels strings.Builder
		for n := range maxLabels / 2 {
			fmt.Fprintf(&labels, `"label-%d":"%s",`, n, strings.Repeat("x", 60))
		}
		fmt.Fprintf(w, `{"metadata":{"name":"n-%d","labels":{%s"a":"b"}}},`, i, labels.String())
	}
}

// crowd is a namespace with fifty TenantClusters that lead to one server.
type crowd struct {
	registry *Registry
	keys     []types.NamespacedName
	good     types.NamespacedName
}

const crowdSize = 50

// newCrowd makes the TenantClusters, and beside them a tenant of another namespace whose API server is real. The lists of Nodes of the crowd
// are answered by list.
func newCrowd(t *testing.T, list http.HandlerFunc) *crowd {
	t.Helper()
	c := &crowd{good: types.NamespacedName{Namespace: "good", Name: "t"}}
	inner := gatekeeper(t, func(string) int { return 0 })
	proxy, ca := newTLSServer(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch call := tenantcalls.Of(request); {
		case request.URL.Query().Has("sendInitialEvents"):
			// As a server that is too old for it, so that the objects are listed.
			refused := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
			http.Error(w, refused.Error(), http.StatusUnprocessableEntity)
		case call == tenantcalls.Call{Verb: "list", Resource: "nodes"}:
			list(w, request)
		case call == tenantcalls.Call{Verb: "watch", Resource: "nodes"}:
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
			<-request.Context().Done()
		default:
			inner.ServeHTTP(w, request)
		}
	}))
	// After the server, so that it ends before: the server waits for its watches.
	c.registry = newRegistry(t, Options{Memory: 2 << 20, ProbeInterval: 20 * time.Millisecond})
	if err := c.registry.Set(t.Context(), c.good, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	usable(t, c.registry, c.good)
	for i := range crowdSize {
		key := types.NamespacedName{Namespace: "bad", Name: fmt.Sprint("t-", i)}
		c.keys = append(c.keys, key)
		if err := c.registry.Set(t.Context(), key, configOf(proxy.URL, ca, "", "token: a")); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// useGood does for the good tenant what reconciles do, and returns what goes wrong.
func (c *crowd) useGood(t *testing.T) error {
	access, err := c.registry.For(c.good)
	if err != nil {
		return err
	}
	ctx, end := withRound(t.Context())
	defer end()
	return access.Client.List(ctx, &corev1.NodeList{})
}

// refused returns the error of one of the crowd that is not used for the reason; nil: there is none.
func (c *crowd) refused(reason string) error {
	for _, key := range c.keys {
		if _, err := c.registry.For(key); reasonOf(err) == reason {
			return err
		}
	}
	return nil
}

// count returns the reasons of the crowd, and how much is counted of it.
func (c *crowd) count() (reasons map[string]int, kept, arriving int64) {
	reasons = map[string]int{}
	for _, key := range c.keys {
		_, err := c.registry.For(key)
		reasons[reasonOf(err)]++
	}
	b := c.registry.book
	b.mu.Lock()
	defer b.mu.Unlock()
	return reasons, b.kept.held["bad"], b.arriving.held["bad"]
}

func TestFiftyTenantClustersOfANamespaceKeepNoMoreThanOneNamespaceMay(t *testing.T) {
	c := newCrowd(t, func(w http.ResponseWriter, _ *http.Request) {
		hostileNodes(w, 60)
		fmt.Fprint(w, `{"metadata":{"name":"last"}}]}`)
	})
	limit := c.registry.book.kept.namespace
	var refused error
	eventually(t, "some of them are used, and another is too large with them", func() bool {
		reasons, kept, _ := c.count()
		if err := c.useGood(t); err != nil {
			t.Fatalf("another namespace notices: %v", err)
		}
		if kept > limit {
			t.Fatalf("%s are kept of a namespace, and its limit is %s", mebibytes(kept), mebibytes(limit))
		}
		refused = c.refused(v1alpha1.ReasonTenantTooLarge)
		return reasons[""] > 0 && kept > limit/2 && refused != nil
	})
	t.Log(refused)
	if !strings.Contains(refused.Error(), "all that is kept of all TenantClusters of namespace bad") {
		t.Error("the error does not say which bound it is")
	}
	for _, key := range c.keys {
		c.registry.Remove(key)
	}
	eventually(t, "nothing of them is counted any more", func() bool { _, kept, arriving := c.count(); return kept+arriving == 0 })
}

func TestFiftyTenantClustersOfANamespaceThatStallTakeNoMoreThanOneNamespaceMay(t *testing.T) {
	release := make(chan struct{})
	c := newCrowd(t, func(w http.ResponseWriter, request *http.Request) {
		hostileNodes(w, 40)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
			fmt.Fprint(w, `{"metadata":{"name":"last"}}]}`)
		case <-request.Context().Done():
		}
	})
	limit := c.registry.book.arriving.namespace
	isCrowdedOut := func() bool {
		for _, key := range c.keys {
			if _, err := c.registry.For(key); err != nil && strings.Contains(err.Error(), "no room for an answer now") {
				return true
			}
		}
		return false
	}
	eventually(t, "there is no room for all of them", func() bool {
		if err := c.useGood(t); err != nil {
			t.Fatalf("another namespace notices: %v", err)
		}
		_, _, arriving := c.count()
		if arriving > limit {
			t.Fatalf("%s are arriving from a namespace, and its limit is %s", mebibytes(arriving), mebibytes(limit))
		}
		return arriving >= limit/2 && isCrowdedOut()
	})
	if reasons, _, _ := c.count(); reasons[v1alpha1.ReasonTenantTooLarge] != 0 {
		t.Errorf("clusters are lost because of others of their namespace: %v", reasons)
	}
	close(release)
	eventually(t, "answers are asked for again", func() bool { reasons, kept, _ := c.count(); return kept > 0 && reasons[""] > 0 })
}

func TestARoundWhoseAnswerFoundNoRoomBesideOtherNamespacesConcludesNothing(t *testing.T) {
	b := newBook(1<<20, 0)
	crowd, sibling, others, small := b.open("a", nil), b.open("a", nil), b.open("c", nil), b.open("b", nil)
	begin := func(namespace string) *Round {
		var s Shares
		return s.Begin(t.Context(), namespaced(namespace), requestOf(namespaced(namespace), 1))
	}
	if err := crowd.receive(b.arriving.namespace); err != nil {
		t.Fatal(err)
	}
	r := begin("a")
	// A tenant that fills its own room counts as unreachable, so that the drain time-out of its Machines ends.
	if err := countOf(r).receive(sibling, 1); !isCrowded(err) || r.Interrupted() != nil {
		t.Errorf("beside its own namespace: %v, the round: %v", err, r.Interrupted())
	}
	r.End()
	if err := others.receive(b.arriving.total - b.arriving.reserve - b.arriving.namespace); err != nil {
		t.Fatal(err)
	}
	r = begin("b")
	if err := countOf(r).receive(small, 1<<19); !isCrowded(err) || !isCrowded(r.Interrupted()) {
		t.Errorf("beside other namespaces: %v, the round: %v", err, r.Interrupted())
	}
	r.End()
}

func TestTheNamespaceThatHoldsMostGivesWay(t *testing.T) {
	b := newBook(1<<20, 0)
	gone := make(chan string, 9)
	open := func(namespace, name string) *account {
		return b.open(namespace, func(cause *tooLargeError) { gone <- name + ": " + cause.Error() })
	}
	most, sibling, second, third, small := open("a", "most"), open("a", "sibling"), open("c", "second"), open("d", "third"), open("b", "small")
	for _, each := range []struct {
		account *account
		bytes   int64
	}{{most, b.kept.cluster}, {sibling, 1 << 10}, {second, b.kept.cluster}, {third, b.kept.cluster / 4}} {
		if err := each.account.keep("nodes", 1, each.bytes); err != nil {
			t.Fatal(err)
		}
	}
	if err := small.keep("nodes", 1, b.kept.cluster/2); err != nil {
		t.Errorf("the one that asks is refused: %v", err)
	}
	if text := <-gone; !strings.HasPrefix(text, "most: its namespace keeps 1.0 MiB, more than others") {
		t.Error(text)
	}
	if len(gone) != 0 || b.kept.held["a"] != 1<<10 || b.kept.held["b"] != b.kept.cluster/2 {
		t.Errorf("%d more gave way; %v", len(gone), b.kept.held)
	}
	// What comes before its caches are stopped is not counted, and is no reason to suspend it once more.
	if err := most.keep("nodes", 2, b.kept.cluster); err != nil || b.kept.held["a"] != 1<<10 {
		t.Errorf("%v; %v", err, b.kept.held)
	}
	most.forget("nodes")
	// Whoever holds most itself is refused.
	if err := most.keep("nodes", 1, b.kept.cluster); tooLarge(err) == nil {
		t.Errorf("the one that would hold most: %v", err)
	}
}

// countOf returns what counts the answers of the round.
func countOf(r *Round) *round { return r.Context.Value(roundKey{}).(*round) }

// ending is a client whose calls fail.
type ending struct {
	client.Client
	err error
}

// Delete implements client.Client.
func (e ending) Delete(context.Context, client.Object, ...client.DeleteOption) error { return e.err }

func TestADeletionThatWasEndedIsNotRememberedAsARefusal(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ended, end := context.WithCancelCause(t.Context())
	end(errTakenBack)
	late, stop := context.WithCancelCause(t.Context())
	stop(context.DeadlineExceeded)
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want bool
	}{
		{"its worker was taken back", ended, context.Canceled, false},
		{"its answer found no room", t.Context(), fmt.Errorf("delete: %w", &crowdedError{what: "no room"}), false},
		{"its own namespace leaves no room", t.Context(), &crowdedError{what: "no room", byItself: true}, true},
		{"it takes too long", late, context.Canceled, true},
		{"a webhook fails", t.Context(), errors.New("failed calling webhook"), true},
	} {
		var d Deletions
		if err := d.Try(c.ctx, ending{err: c.err}, node, now); err == nil {
			t.Errorf("%s: no error", c.name)
		}
		if got := d.Problem(node, now.Add(time.Second)); (got != "") != c.want {
			t.Errorf("%s: remembered as %q", c.name, got)
		}
	}
}
