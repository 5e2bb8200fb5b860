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

// follower handles every version of the objects of one kind, except versions from a time when the API server did not answer.
type follower struct {
	client client.WithWatch
	list   client.ObjectList
	// handle is called with one version. late means that earlier versions may have been missed.
	handle func(o runtime.Object, late bool)
	// known has the latest version of each object that was handled, by UID.
	known map[string]string

	mu sync.Mutex
	// fault is the error that ended the watch; nil while it runs.
	fault error
}

// err returns the error that ended the watch, or nil while it runs.
func (f *follower) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}

// setFault sets the error that ended the watch.
func (f *follower) setFault(fault error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// retryInterval is the time between two attempts to reach an API server that does not answer.
const retryInterval = 500 * time.Millisecond

// start handles the existing objects and returns a watch for their changes.
func (f *follower) start(ctx context.Context, late bool) (watch.Interface, error) {
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
	f.handle(o, late)
}

// run handles changes until the context ends.
func (f *follower) run(ctx context.Context, stream watch.Interface) {
	for {
		for e := range stream.ResultChan() {
			if e.Type == watch.Added || e.Type == watch.Modified {
				f.deliver(e.Object, false)
			}
		}
		stream.Stop()
		f.setFault(fmt.Errorf("the watch of %T ended", f.list))
		for {
			WaitForEvents(ctx, retryInterval)
			if ctx.Err() != nil {
				return
			}
			var err error
			stream, err = f.start(ctx, true)
			if f.setFault(err); err == nil {
				break
			}
		}
	}
}
