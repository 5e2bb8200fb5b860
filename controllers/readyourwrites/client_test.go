package readyourwrites_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/readyourwrites"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(management.Main(m, &server))
}

// behind is a cache that stands still: it shows the ConfigMaps that sync copied from the API server.
type behind struct {
	client.Client
	seen map[client.ObjectKey]corev1.ConfigMap
}

func (b *behind) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	object, ok := b.seen[key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	object.DeepCopyInto(into.(*corev1.ConfigMap))
	return nil
}

func (b *behind) sync(t *testing.T, key client.ObjectKey) {
	t.Helper()
	var object corev1.ConfigMap
	err := b.Client.Get(t.Context(), key, &object)
	if apierrors.IsNotFound(err) {
		delete(b.seen, key)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	b.seen[key] = object
}

// counted counts the reads of the API server.
type counted struct {
	client.Reader
	reads int
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	c.reads++
	return c.Reader.Get(ctx, key, into, options...)
}

type rig struct {
	t      *testing.T
	cache  *behind
	direct *counted
	client client.Client
	key    client.ObjectKey
}

func newRig(t *testing.T) *rig {
	cache := &behind{Client: server.Client, seen: map[client.ObjectKey]corev1.ConfigMap{}}
	direct := &counted{Reader: server.Client}
	r := &rig{t: t, cache: cache, direct: direct, client: readyourwrites.Wrap(cache, direct), key: client.ObjectKey{Namespace: server.Namespace(t), Name: "one"}}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.key.Namespace, Name: r.key.Name}, Data: map[string]string{"written": "first", "first": "yes"},
	}
	if err := r.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return r
}

// read expects what the client shows, and how often it asked the API server until now.
func (r *rig) read(written string, reads int) *corev1.ConfigMap {
	r.t.Helper()
	var object corev1.ConfigMap
	if err := r.client.Get(r.t.Context(), r.key, &object); err != nil {
		r.t.Fatal(err)
	}
	if object.Data["written"] != written || r.direct.reads != reads {
		r.t.Fatalf("read %q with %d reads of the API server until now, want %q with %d", object.Data["written"], r.direct.reads, written, reads)
	}
	return &object
}

func TestOneSeesWhatOneHasWritten(t *testing.T) {
	r := newRig(t)
	object := r.read("first", 1) // the cache has not seen it
	r.cache.sync(t, r.key)
	r.read("first", 1)

	before := object.DeepCopy()
	object.Data = map[string]string{"written": "patched"}
	if err := r.client.Patch(t.Context(), object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	object.Data["written"] = "not written"
	object = r.read("patched", 1) // what was answered
	if _, shines := object.Data["first"]; shines {
		t.Error("what the cache had shines through what was answered")
	}
	object.Data["written"] = "not written"
	r.read("patched", 1)
	r.cache.sync(t, r.key)
	object = r.read("patched", 1)

	object.Data["written"] = "updated"
	if err := r.client.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	r.read("updated", 1)
	for i := range 2 * readyourwrites.MaxAnswers {
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.key.Namespace, Name: fmt.Sprint("other-", i)}}
		if err := r.client.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	r.read("updated", 2) // by then the API server must be asked
	r.cache.sync(t, r.key)
	r.read("updated", 2)
}

// TestWhatIsRemovedWithItsLastFinalizerIsGone has the cache show it still.
func TestWhatIsRemovedWithItsLastFinalizerIsGone(t *testing.T) {
	r := newRig(t)
	r.cache.sync(t, r.key)
	object := r.read("first", 0)
	object.Finalizers = []string{"ingot.dev/test"}
	if err := r.client.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := r.client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	r.cache.sync(t, r.key)
	object = r.read("first", 0)
	object.Finalizers = nil
	if err := r.client.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	for _, isInCache := range []bool{true, false} {
		if !isInCache {
			r.cache.sync(t, r.key)
		}
		if err := r.client.Get(t.Context(), r.key, object); !apierrors.IsNotFound(err) || r.direct.reads != 0 {
			t.Errorf("in the cache: %v: read %v, %v with %d reads of the API server, want not found with none", isInCache, object, err, r.direct.reads)
		}
	}
	again := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.key.Namespace, Name: r.key.Name}, Data: map[string]string{"written": "again"}}
	if err := server.Client.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	r.cache.sync(t, r.key)
	r.read("again", 0)
}

func TestAWriteThatFailedIsNotWaitedFor(t *testing.T) {
	r := newRig(t)
	r.cache.sync(t, r.key)
	stale := r.read("first", 0).DeepCopy()
	stale.ResourceVersion = "1"
	stale.Data["written"] = "never"
	if err := r.client.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Fatalf("an update under an old version: %v, want a conflict", err)
	}
	r.read("first", 0)
}

func TestOthersWritesShowUpWithTheCache(t *testing.T) {
	r := newRig(t)
	r.cache.sync(t, r.key)
	other := r.read("first", 0).DeepCopy()
	other.Data["written"] = "by another"
	if err := server.Client.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	r.read("first", 0)
	r.cache.sync(t, r.key)
	r.read("by another", 0)
}

func TestWhatIsGoneIsGone(t *testing.T) {
	r := newRig(t)
	object := r.read("first", 1)
	if err := server.Client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	for i, wanted := range []int{2, 2} { // the second time the cache's word is enough
		if err := r.client.Get(t.Context(), r.key, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) || r.direct.reads != wanted {
			t.Errorf("read %d: %v with %d reads of the API server, want not found with %d", i, err, r.direct.reads, wanted)
		}
	}
}

func TestStatusesAreWaitedForToo(t *testing.T) {
	key := client.ObjectKey{Namespace: server.Namespace(t), Name: "one"}
	record := &v1alpha1.HostRecord{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	server.Create(t, record)
	direct := &counted{Reader: server.Client}
	for _, tt := range []struct {
		cache   client.Client
		message string
		reads   int
	}{
		{server.Client, "the cache is new enough", 0},
		{&frozen{Client: server.Client, record: record.DeepCopy()}, "the cache stands still", 0},
	} {
		c := readyourwrites.Wrap(tt.cache, direct)
		changed := record.DeepCopy()
		changed.Status.LastTenant = tt.message
		if err := c.Status().Patch(t.Context(), changed, client.MergeFrom(record)); err != nil {
			t.Fatal(err)
		}
		var seen v1alpha1.HostRecord
		if err := c.Get(t.Context(), key, &seen); err != nil || seen.Status.LastTenant != tt.message || direct.reads != tt.reads {
			t.Errorf("read %q, %v, with %d reads beside the cache; want %q with %d", seen.Status.LastTenant, err, direct.reads, tt.message, tt.reads)
		}
	}
}

// frozen is a cache that stands still at one record.
type frozen struct {
	client.Client
	record *v1alpha1.HostRecord
}

func (f *frozen) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	f.record.DeepCopyInto(into.(*v1alpha1.HostRecord))
	return nil
}
