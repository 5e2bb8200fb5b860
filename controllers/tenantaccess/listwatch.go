package tenantaccess

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The limits on the events of a watch. The queues behind a watch have no limit of their own: a tenant that sends events faster than
// they are handled would fill the memory with them. The burst is for the objects that exist already.
const (
	eventsPerSecond = 1000
	eventBurst      = 20000
)

// meteredListerWatcher lists and watches one kind. It trims every object on arrival, before anything keeps it, and enters its size in the
// ledger. A tenant of which too much would be kept is suspended.
type meteredListerWatcher struct {
	from    toolscache.ListerWatcherWithContext
	kind    kind
	ledger  *ledger
	limiter flowcontrol.RateLimiter
	// exceeded is called when the ledger refuses an object.
	exceeded func(error)
}

func newMeteredListerWatcher(s *clientSet, w *kindWatch, from toolscache.ListerWatcher) *toolscache.ListWatch {
	m := &meteredListerWatcher{
		from: toolscache.ToListerWatcherWithContext(from), kind: w.kind, ledger: w.ledger,
		limiter: flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventBurst),
		exceeded: func(err error) {
			if w.ctx.Err() == nil {
				s.exceed(w, "keep its "+w.kind.plural, tooLarge(err))
			}
		},
	}
	return &toolscache.ListWatch{ListWithContextFunc: m.list, WatchFuncWithContext: m.watch}
}

// trimmed adapts a function that trims objects of one type.
func trimmed[T client.Object](trim func(T) T) func(runtime.Object) client.Object {
	return func(o runtime.Object) client.Object {
		if object, ok := o.(T); ok {
			return trim(object)
		}
		return nil
	}
}

// keyOf returns the namespace and the name of an object.
func keyOf(object client.Object) string { return object.GetNamespace() + "/" + object.GetName() }

// keep trims an object and enters it in the ledger. It returns nil for an object of another kind.
func (m *meteredListerWatcher) keep(o runtime.Object) (client.Object, error) {
	object := m.kind.trim(o)
	if object == nil {
		return nil, nil
	}
	err := m.ledger.put(keyOf(object), footprint(object))
	if err != nil {
		m.exceeded(err)
	}
	return object, err
}

// list reads all pages and returns them as one list. It does not leave the pages to the caller: client-go keeps the whole objects of
// all pages until it has the last one, and a server that always names a next page never ends.
func (m *meteredListerWatcher) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Limit = m.kind.page; options.ResourceVersion == "0" {
		// With "0" the API server ignores the limit.
		options.ResourceVersion = ""
	}
	m.ledger.begin()
	var kept []runtime.Object
	known := map[string]bool{}
	for {
		page, err := m.from.ListWithContext(ctx, options)
		if err != nil {
			return nil, err
		}
		before := len(kept)
		err = meta.EachListItem(page, func(item runtime.Object) error {
			object, err := m.keep(item)
			if object != nil && !known[keyOf(object)] {
				kept, known[keyOf(object)] = append(kept, object), true
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the list: %w", err)
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return nil, err
		}
		if list.GetContinue() == "" {
			if err := meta.SetList(page, kept); err != nil {
				return nil, err
			}
			return page, m.ledger.commit()
		}
		// Without this a server whose pages bring nothing new would be asked for ever.
		if len(kept) == before {
			return nil, fmt.Errorf("a page of the list of %s has nothing new and names a next page", m.kind.plural)
		}
		options.Continue, options.ResourceVersion, options.ResourceVersionMatch = list.GetContinue(), "", ""
	}
}

func (m *meteredListerWatcher) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		m.ledger.begin()
	}
	inner, err := m.from.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	w := &meteredWatch{inner: inner, results: make(chan watch.Event), ended: make(chan struct{})}
	go w.run(ctx, m)
	return w, nil
}

// meteredWatch passes on the events of a watch.
type meteredWatch struct {
	inner   watch.Interface
	results chan watch.Event
	ended   chan struct{}
	once    sync.Once
}

// ResultChan implements watch.Interface.
func (w *meteredWatch) ResultChan() <-chan watch.Event { return w.results }

// Stop implements watch.Interface.
func (w *meteredWatch) Stop() {
	w.once.Do(func() { close(w.ended) })
	w.inner.Stop()
}

func (w *meteredWatch) run(ctx context.Context, m *meteredListerWatcher) {
	defer close(w.results)
	defer w.inner.Stop()
	for event := range w.inner.ResultChan() {
		kept, err := m.event(event)
		if err != nil || m.limiter.Wait(ctx) != nil {
			return
		}
		select {
		case w.results <- kept:
		case <-w.ended:
			return
		}
	}
}

// event trims the object of an event and enters the change in the ledger.
func (m *meteredListerWatcher) event(e watch.Event) (watch.Event, error) {
	switch e.Type {
	case watch.Added, watch.Modified:
		object, err := m.keep(e.Object)
		if object != nil {
			e.Object = object
		}
		return e, err
	case watch.Deleted:
		if object := m.kind.trim(e.Object); object != nil {
			m.ledger.drop(keyOf(object))
			e.Object = object
		}
	case watch.Bookmark:
		if object, err := meta.Accessor(e.Object); err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			return e, m.ledger.commit()
		}
	}
	return e, nil
}
