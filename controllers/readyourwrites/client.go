package readyourwrites

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewClient makes the client of a manager. It is a client.NewClientFunc, for manager.Options.NewClient; the client is that of Wrap.
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	cached, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	options.Cache = nil
	apiReader, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	return Wrap(cached, apiReader), nil
}

// Wrap makes a client that reads and writes through cached. While the cache does not have the client's own last write of the object, Get returns what the API
// server answered to that write or, where that is not remembered, reads from apiReader, the API server itself. List always reads from the cache. The client is
// safe for concurrent use.
func Wrap(cached client.Client, apiReader client.Reader) client.Client {
	return &wrapper{Client: cached, apiReader: apiReader, versions: memory[uint64]{limit: maxVersions}, answers: memory[client.Object]{limit: MaxAnswers}}
}

// wrapper is the client that Wrap makes.
type wrapper struct {
	client.Client
	apiReader client.Reader

	// mu guards what follows.
	mu sync.Mutex
	// versions holds the resource version of the last write of each object until the cache has it, and answers what the API server answered to it.
	versions memory[uint64]
	answers  memory[client.Object]
}

// An object that is written and never read again would otherwise be remembered for ever.
const (
	// maxVersions is how many objects have been written since before a write is forgotten. By then minutes have passed, and no cache is that far behind.
	maxVersions = 1 << 15
	// MaxAnswers is the same for what was answered, which is larger. Where it is missing, a read is made.
	MaxAnswers = 1 << 8
)

// memory holds one value for each object: those of the last limit objects, and of at most twice as many.
type memory[V any] struct {
	limit int
	// older is what recent was when it was full.
	recent, older map[objectID]V
}

func (m *memory[V]) put(id objectID, value V) {
	if len(m.recent) >= m.limit {
		m.recent, m.older = nil, m.recent
	}
	if m.recent == nil {
		m.recent = map[objectID]V{}
	}
	m.recent[id] = value
}

func (m *memory[V]) get(id objectID) (V, bool) {
	value, isThere := m.recent[id]
	if !isThere {
		value, isThere = m.older[id]
	}
	return value, isThere
}

func (m *memory[V]) drop(id objectID) {
	delete(m.recent, id)
	delete(m.older, id)
}

// objectID names an object of the cluster.
type objectID struct {
	kind schema.GroupKind
	key  types.NamespacedName
}

// Get implements client.Reader.
func (w *wrapper) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	id, err := w.id(into, key)
	if err != nil {
		return err
	}
	written, answer, isAwaited := w.lastWrite(id)
	err = w.Client.Get(ctx, key, into, options...)
	if !isAwaited {
		return err
	}
	if err == nil && resourceVersion(into) >= written {
		w.forget(id, written)
		return nil
	}
	if isAnswered, err := w.copyAnswer(id, written, answer, into, err); isAnswered {
		return err
	}
	// Decoding leaves the fields alone that the answer does not contain, so a new object is used: fields that the cache filled in
	// would remain otherwise.
	fresh, ok := reflect.New(reflect.TypeOf(into).Elem()).Interface().(client.Object)
	if !ok {
		return fmt.Errorf("read %s %s: no other object of this kind can be made", id.kind.Kind, key)
	}
	if err := w.apiReader.Get(ctx, key, fresh); err != nil {
		if errors.IsNotFound(err) {
			w.forget(id, written)
		}
		return err
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(fresh).Elem())
	return nil
}

// copyAnswer sets the object, which is what the cache has, to what was answered to the last write of it, and reports whether that is known; failure is that of
// the cache.
func (w *wrapper) copyAnswer(id objectID, written uint64, answer, into client.Object, failure error) (bool, error) {
	switch {
	case answer == nil || reflect.TypeOf(answer) != reflect.TypeOf(into):
		return false, nil
	case isGone(answer) && failure == nil && into.GetUID() == answer.GetUID():
		return true, errors.NewNotFound(schema.GroupResource{Group: id.kind.Group, Resource: strings.ToLower(id.kind.Kind)}, id.key.Name)
	case isGone(answer):
		w.forget(id, written)
		return true, failure
	case failure != nil:
		return false, nil // where the cache has no such object, it may be gone since
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(answer.DeepCopyObject()).Elem())
	return true, nil
}

// Create implements client.Writer.
func (w *wrapper) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return w.remember(o, w.Client.Create(ctx, o, options...))
}

// Update implements client.Writer.
func (w *wrapper) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return w.remember(o, w.Client.Update(ctx, o, options...))
}

// Patch implements client.Writer.
func (w *wrapper) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return w.remember(o, w.Client.Patch(ctx, o, patch, options...))
}

// Status implements client.StatusClient.
func (w *wrapper) Status() client.SubResourceWriter {
	return statusWriter{SubResourceWriter: w.Client.Status(), wrapper: w}
}

// statusWriter writes the status subresource through a wrapper.
type statusWriter struct {
	client.SubResourceWriter
	wrapper *wrapper
}

// Update implements client.SubResourceWriter.
func (s statusWriter) Update(ctx context.Context, o client.Object, options ...client.SubResourceUpdateOption) error {
	return s.wrapper.remember(o, s.SubResourceWriter.Update(ctx, o, options...))
}

// Patch implements client.SubResourceWriter.
func (s statusWriter) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return s.wrapper.remember(o, s.SubResourceWriter.Patch(ctx, o, patch, options...))
}

// remember stores what a write gave the object, and returns the write's error.
func (w *wrapper) remember(o client.Object, err error) error {
	if err != nil {
		return err
	}
	id, err := w.id(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	version := resourceVersion(o)
	if isGone(o) {
		version++ // the answer to the write that removes an object has the resource version of before
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, _ := w.versions.get(id); version < before {
		return nil
	}
	w.versions.put(id, version)
	w.answers.drop(id)
	if _, isSecret := o.(*corev1.Secret); !isSecret { // it is kept no longer than it is used
		w.answers.put(id, o.DeepCopyObject().(client.Object))
	}
	return nil
}

// isGone reports whether the write that was answered with the object removed its last finalizer, and it with that.
func isGone(o client.Object) bool {
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0
}

// id names the object of that type and key.
func (w *wrapper) id(o client.Object, key types.NamespacedName) (objectID, error) {
	kind, err := w.GroupVersionKindFor(o)
	if err != nil {
		return objectID{}, fmt.Errorf("find the kind of the object %s: %w", key, err)
	}
	return objectID{kind: kind.GroupKind(), key: key}, nil
}

// lastWrite returns the resource version of the last write of the object, what was answered to it, nil: that is forgotten, and whether the cache still lacks it.
func (w *wrapper) lastWrite(id objectID) (version uint64, answer client.Object, isAwaited bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	version, isAwaited = w.versions.get(id)
	answer, _ = w.answers.get(id)
	return version, answer, isAwaited
}

// forget drops the writes of the object up to a resource version that the cache has. A newer write stays.
func (w *wrapper) forget(id objectID, cached uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if version, _ := w.versions.get(id); version <= cached {
		w.versions.drop(id)
		w.answers.drop(id)
	}
}

// resourceVersion returns the object's resource version as a number, and 0 where it is none.
func resourceVersion(o client.Object) uint64 {
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return v
}
