package invariants

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follower delivers every version of the objects of one kind, but for those of the time when the API server did not answer.
type follower struct {
	client client.WithWatch
	list   client.ObjectList
	// seen gets one version; late: there may be earlier ones that nobody saw.
	seen func(o runtime.Object, late bool)
	// known are the objects that were delivered, with their newest version.
	known map[string]string

	mu sync.Mutex
	// fault is why nothing is seen now; nil while the watch runs.
	fault error
}

// away is why nothing is seen now, nil when it is.
func (f *follower) away() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}

func (f *follower) set(fault error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// pause is how long an API server that is away is left alone.
const pause = 500 * time.Millisecond

// begin delivers what is there and watches from then on.
func (f *follower) begin(ctx context.Context, late bool) (watch.Interface, error) {
	if err := f.client.List(ctx, f.list); err != nil {
		return nil, fmt.Errorf("list %T: %w", f.list, err)
	}
	items, err := meta.ExtractList(f.list)
	if err != nil {
		return nil, fmt.Errorf("list %T: %w", f.list, err)
	}
	if f.known == nil {
		f.known = map[string]string{}
	}
	for _, o := range items {
		f.deliver(o, late)
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: f.list.GetResourceVersion()}}
	stream, err := f.client.Watch(ctx, f.list, from)
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", f.list, err)
	}
	return stream, nil
}

func (f *follower) deliver(o runtime.Object, late bool) {
	m, err := meta.Accessor(o)
	if err != nil || f.known[string(m.GetUID())] == m.GetResourceVersion() {
		return
	}
	f.known[string(m.GetUID())] = m.GetResourceVersion()
	f.seen(o, late)
}

// run watches until the context ends.
func (f *follower) run(ctx context.Context, stream watch.Interface) {
	for {
		for e := range stream.ResultChan() {
			if e.Type == watch.Added || e.Type == watch.Modified {
				f.deliver(e.Object, false)
			}
		}
		stream.Stop()
		f.set(fmt.Errorf("the watch of %T ended", f.list))
		for {
			Settle(ctx, pause)
			if ctx.Err() != nil {
				return
			}
			var err error
			stream, err = f.begin(ctx, true)
			if f.set(err); err == nil {
				break
			}
		}
	}
}
