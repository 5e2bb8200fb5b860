package invariants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Watcher records violations in a management cluster and in the cluster of one tenant.
type Watcher struct {
	management client.Client
	gate       *gateHistory

	nodes, pods *follower

	mu    sync.Mutex
	found map[string]bool
}

// Start watches until the context ends. The gate is the key of the gate taint. A tenant whose API server does not answer is watched again
// when it answers.
func Start(ctx context.Context, management client.Client, tenant client.WithWatch, gate string) (*Watcher, error) {
	w := &Watcher{management: management, gate: newGateHistory(gate), found: map[string]bool{}}
	w.nodes = &follower{client: tenant, list: &corev1.NodeList{}, handle: func(o runtime.Object, late bool) {
		if n, ok := o.(*corev1.Node); ok {
			w.gate.recordNode(n, late)
		}
	}}
	w.pods = &follower{client: tenant, list: &corev1.PodList{}, handle: func(o runtime.Object, late bool) {
		if p, ok := o.(*corev1.Pod); ok {
			w.gate.recordPod(p, late)
		}
	}}
	for _, f := range []*follower{w.nodes, w.pods} {
		stream, err := f.start(ctx, false)
		if err != nil {
			return nil, err
		}
		go f.run(ctx, stream)
	}
	return w, nil
}

// ReplaceManagement has Check list the objects of another management cluster from now on.
func (w *Watcher) ReplaceManagement(management client.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.management = management
}

// Check lists hosts and Machines once and records violations. A violation between two calls is missed, so it should be called often.
func (w *Watcher) Check(ctx context.Context) error {
	var hosts metal3.BareMetalHostList
	var records v1alpha1.HostRecordList
	var machines v1alpha1.MachineList
	w.mu.Lock()
	management := w.management
	w.mu.Unlock()
	for _, l := range []client.ObjectList{&machines, &hosts, &records} {
		if err := management.List(ctx, l); err != nil {
			return fmt.Errorf("look for broken invariants: %w", err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range claimViolations(hosts.Items, records.Items, machines.Items) {
		w.found[v] = true
	}
	return nil
}

// Violations returns the violations so far, sorted. It returns an error when the tenant's API server does not answer.
func (w *Watcher) Violations() ([]string, error) {
	out := w.gate.violations()
	w.mu.Lock()
	defer w.mu.Unlock()
	for v := range w.found {
		out = append(out, v)
	}
	slices.Sort(out)
	return out, errors.Join(w.nodes.err(), w.pods.err())
}

// Leaks returns the places in which one of the secrets appears: an event, a status or one of the texts.
func Leaks(ctx context.Context, c client.Client, secrets []string, texts map[string][]byte) ([]string, error) {
	places := map[string][]byte{}
	for name, text := range texts {
		places[name] = text
	}
	for _, l := range []client.ObjectList{
		&corev1.EventList{}, &v1alpha1.MachineList{}, &v1alpha1.HostRecordList{}, &metal3.BareMetalHostList{},
		&v1alpha1.NodeTypeList{}, &v1alpha1.NodeTypeRevisionList{}, &v1alpha1.NodeTypeRenderingList{}, &v1alpha1.TenantClusterList{}, &v1alpha1.NodePoolList{}, &v1alpha1.OSImageList{},
	} {
		if err := c.List(ctx, l); err != nil {
			return nil, fmt.Errorf("look for leaked secrets: %w", err)
		}
		text, err := json.Marshal(l)
		if err != nil {
			return nil, fmt.Errorf("look for leaked secrets: %w", err)
		}
		places[fmt.Sprintf("%T", l)] = text
	}
	var out []string
	for name, text := range places {
		for i, s := range secrets {
			if s != "" && bytes.Contains(text, []byte(s)) {
				out = append(out, fmt.Sprintf("secret %d of %d appears in %s", i+1, len(secrets), name))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// WaitForEvents waits for d, so that events that are under way are handled before Violations is called.
func WaitForEvents(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
