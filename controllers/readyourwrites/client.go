package readyourwrites

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"sync"

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

// Wrap makes a client that reads and writes through cached. Get reads from apiReader, the API server itself, while the cache does
// not have the client's own last write of the object. List always reads from the cache. The client is safe for concurrent use.
func Wrap(cached client.Client, apiReader client.Reader) client.Client {
	return &wrapper{Client: cached, apiReader: apiReader, recent: map[objectID]uint64{}}
}

// wrapper is the client that Wrap makes.
type wrapper struct {
	client.Client
	apiReader client.Reader

	// mu guards recent and older.
	mu sync.Mutex
	// recent holds the resource version of the last write of each object, until the cache has it. older is the map that recent
	// replaced when it was full.
	recent, older map[objectID]uint64
}

// maxRecent is how many writes recent may hold. When it is full it replaces older, whose entries are dropped: an object that is
// written and never read again would otherwise be remembered for ever. By the time that so many other objects have been written,
// minutes have passed, and no cache is that far behind.
const maxRecent = 1 << 15

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
	written, isAwaited := w.lastWrite(id)
	err = w.Client.Get(ctx, key, into, options...)
	if !isAwaited {
		return err
	}
	if err == nil && resourceVersion(into) >= written {
		w.forget(id, written)
		return nil
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

// remember stores the resource version that a write gave the object, and returns the write's error.
func (w *wrapper) remember(o client.Object, err error) error {
	if err != nil {
		return err
	}
	id, err := w.id(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.recent) >= maxRecent {
		w.recent, w.older = map[objectID]uint64{}, w.recent
	}
	w.recent[id] = max(w.recent[id], w.older[id], resourceVersion(o))
	return nil
}

// id names the object of that type and key.
func (w *wrapper) id(o client.Object, key types.NamespacedName) (objectID, error) {
	kind, err := w.GroupVersionKindFor(o)
	if err != nil {
		return objectID{}, fmt.Errorf("find the kind of the object %s: %w", key, err)
	}
	return objectID{kind: kind.GroupKind(), key: key}, nil
}

// lastWrite returns the resource version of the last write of the object, and whether the cache still lacks it.
func (w *wrapper) lastWrite(id objectID) (version uint64, isAwaited bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if version, isAwaited = w.recent[id]; !isAwaited {
		version, isAwaited = w.older[id]
	}
	return version, isAwaited
}

// forget drops the writes of the object up to a resource version that the cache has. A newer write stays.
func (w *wrapper) forget(id objectID, cached uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if max(w.recent[id], w.older[id]) <= cached {
		delete(w.recent, id)
		delete(w.older, id)
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
