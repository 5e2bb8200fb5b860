package newest

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

// ForManager is controller-runtime's hook for a manager's client (manager.Options.NewClient): the client it makes is New's.
func ForManager(config *rest.Config, options client.Options) (client.Client, error) {
	cached, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	options.Cache = nil
	direct, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	return New(cached, direct), nil
}

// New makes a client that reads and writes through cached. Get falls back on direct, which reads from the API server,
// for objects of which the cache has not seen the last write yet. List is the cache's. It is safe for concurrent use.
func New(cached client.Client, direct client.Reader) client.Client {
	return &newest{Client: cached, direct: direct, written: map[object]uint64{}}
}

type newest struct {
	client.Client
	direct client.Reader

	mu sync.Mutex
	// written are the resource versions of writes that were not seen in the cache yet, before those of an earlier time.
	written, before map[object]uint64
}

// enough writes are remembered, and as many of an earlier time. What is written and never read again, as the revision that no
// Machine takes, would stay for ever otherwise. With so many objects written after it, minutes have passed: no cache is behind by that.
const enough = 1 << 15

// object names an object of the cluster.
type object struct {
	kind schema.GroupKind
	key  types.NamespacedName
}

// Get implements client.Reader.
func (n *newest) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	id, err := n.id(into, key)
	if err != nil {
		return err
	}
	wanted, waiting := n.waiting(id)
	err = n.Client.Get(ctx, key, into, options...)
	if !waiting {
		return err
	}
	if err == nil && version(into) >= wanted {
		n.forget(id, wanted)
		return nil
	}
	// What the cache filled in must not shine through.
	fresh, ok := reflect.New(reflect.TypeOf(into).Elem()).Interface().(client.Object)
	if !ok {
		return fmt.Errorf("read %s %s: no other object of this kind can be made", id.kind.Kind, key)
	}
	if err := n.direct.Get(ctx, key, fresh); err != nil {
		if errors.IsNotFound(err) {
			n.forget(id, wanted)
		}
		return err
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(fresh).Elem())
	return nil
}

// Create implements client.Writer.
func (n *newest) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return n.note(o, n.Client.Create(ctx, o, options...))
}

// Update implements client.Writer.
func (n *newest) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return n.note(o, n.Client.Update(ctx, o, options...))
}

// Patch implements client.Writer.
func (n *newest) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return n.note(o, n.Client.Patch(ctx, o, patch, options...))
}

// Status implements client.StatusClient.
func (n *newest) Status() client.SubResourceWriter {
	return status{SubResourceWriter: n.Client.Status(), newest: n}
}

type status struct {
	client.SubResourceWriter
	newest *newest
}

// Update implements client.SubResourceWriter.
func (s status) Update(ctx context.Context, o client.Object, options ...client.SubResourceUpdateOption) error {
	return s.newest.note(o, s.SubResourceWriter.Update(ctx, o, options...))
}

// Patch implements client.SubResourceWriter.
func (s status) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return s.newest.note(o, s.SubResourceWriter.Patch(ctx, o, patch, options...))
}

// note keeps the version that a write gave the object. A write that failed gave none.
func (n *newest) note(o client.Object, err error) error {
	if err != nil {
		return err
	}
	id, err := n.id(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.written) >= enough {
		n.written, n.before = map[object]uint64{}, n.written
	}
	n.written[id] = max(n.written[id], n.before[id], version(o))
	return nil
}

func (n *newest) id(o client.Object, key types.NamespacedName) (object, error) {
	kind, err := n.GroupVersionKindFor(o)
	if err != nil {
		return object{}, fmt.Errorf("find the kind of the object %s: %w", key, err)
	}
	return object{kind: kind.GroupKind(), key: key}, nil
}

func (n *newest) waiting(id object) (wanted uint64, is bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if wanted, is = n.written[id]; !is {
		wanted, is = n.before[id]
	}
	return wanted, is
}

// forget ends the wait, unless there was a newer write meanwhile.
func (n *newest) forget(id object, seen uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if max(n.written[id], n.before[id]) <= seen {
		delete(n.written, id)
		delete(n.before, id)
	}
}

func version(o client.Object) uint64 {
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return v
}
