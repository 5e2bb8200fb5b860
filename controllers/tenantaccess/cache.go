package tenantaccess

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeNameField is the field by which ResourceSlices of a Node can be listed from an Access's Cache.
const NodeNameField = "spec.nodeName"

// kind is one kind of object that is watched.
type kind struct {
	// plural is for people.
	plural    string
	object    client.Object
	transform toolscache.TransformFunc
	handler   func(*clientSet) toolscache.ResourceEventHandler
	indexes   map[string]client.IndexerFunc
}

var (
	nodeKind  = kind{plural: "Nodes", object: &corev1.Node{}, transform: trimNode, handler: nodeHandler}
	sliceKind = kind{
		plural: "ResourceSlices", object: &resourcev1.ResourceSlice{}, transform: trimSlice, handler: sliceHandler,
		indexes: map[string]client.IndexerFunc{NodeNameField: sliceNode, PoolNameField: slicePool},
	}
)

// watched is a kind of one tenant that is watched. synced, path and broken are under the client set's mu.
type watched struct {
	kind   kind
	reader cache.Cache
	ctx    context.Context
	stop   context.CancelFunc
	synced bool
	// broken is why the last list or watch at path did not begin; nil: it did.
	broken error
	path   string
}

// follow watches what the tenant serves now: its Nodes and, from the day on which it serves resource.k8s.io/v1, its
// ResourceSlices. It returns before anything new was read.
func (s *clientSet) follow(parts *sync.WaitGroup) error {
	served, err := s.servesSlices()
	if err != nil {
		return err
	}
	s.mu.Lock()
	nodes, slices := s.nodes, s.slices
	s.mu.Unlock()
	if nodes == nil {
		if nodes, err = s.begin(parts, nodeKind); err != nil {
			return err
		}
	}
	gone := slices != nil && !served
	switch {
	case gone:
		slices.stop()
		slices = nil
	case slices == nil && served:
		if slices, err = s.begin(parts, sliceKind); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.nodes, s.slices = nodes, slices
	s.mu.Unlock()
	if gone {
		s.hub.tenantChanged(s)
	}
	return nil
}

// begin starts to watch a kind.
func (s *clientSet) begin(parts *sync.WaitGroup, k kind) (*watched, error) {
	w := &watched{kind: k}
	w.ctx, w.stop = context.WithCancel(s.ctx)
	if err := s.open(w); err != nil {
		w.stop()
		return nil, fmt.Errorf("watch %s: %w", k.plural, err)
	}
	parts.Go(func() {
		if err := w.reader.Start(w.ctx); err != nil {
			s.log.Error(err, "The cache ended", "of", k.plural)
		}
	})
	parts.Go(func() {
		if w.reader.WaitForCacheSync(w.ctx) {
			s.mu.Lock()
			w.synced = true
			s.mu.Unlock()
			s.settle()
		}
	})
	return w, nil
}

// open makes the cache of a kind, with its indexes and its handler.
func (s *clientSet) open(w *watched) error {
	httpClient, err := newHTTPClient(s.config, s.transport, deadlines{
		answer: s.options.Timeout, whole: listFactor * s.options.Timeout, size: maxList, began: func(path string, err error) { s.streamBegan(w, path, err) },
	})
	if err != nil {
		return err
	}
	w.reader, err = cache.New(s.config, cache.Options{
		HTTPClient: httpClient, Scheme: s.options.Scheme, Mapper: s.direct.RESTMapper(),
		ByObject: map[client.Object]cache.ByObject{w.kind.object: {Transform: w.kind.transform}},
		// Without it, reading a Secret from the cache would start to watch all of the tenant's Secrets.
		ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			s.log.V(1).Info("A watch ended", "reason", err.Error())
		},
	})
	if err != nil {
		return err
	}
	for field, index := range w.kind.indexes {
		if err := w.reader.IndexField(w.ctx, w.kind.object, field, index); err != nil {
			return fmt.Errorf("index by %s: %w", field, err)
		}
	}
	informer, err := w.reader.GetInformer(w.ctx, w.kind.object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(w.kind.handler(s))
	return err
}

func sliceNode(object client.Object) []string {
	if slice, ok := object.(*resourcev1.ResourceSlice); ok && slice.Spec.NodeName != nil {
		return []string{*slice.Spec.NodeName}
	}
	return nil
}

// streamBegan notes how a list or watch began. A watch that cannot be renewed makes what is cached stale, and stale
// is not synced.
func (s *clientSet) streamBegan(w *watched, path string, err error) {
	if w.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	w.path, w.broken = path, err
	s.mu.Unlock()
	s.settle()
}

// reader reads each kind from its own cache. Where slices is nil, reading ResourceSlices is an error like reading any kind
// that is not watched.
type reader struct{ nodes, slices client.Reader }

func (r reader) of(slices bool) client.Reader {
	if slices && r.slices != nil {
		return r.slices
	}
	return r.nodes
}

// Get reads one object.
func (r reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	_, slice := into.(*resourcev1.ResourceSlice)
	return r.of(slice).Get(ctx, key, into, options...)
}

// List reads many.
func (r reader) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	_, slices := into.(*resourcev1.ResourceSliceList)
	return r.of(slices).List(ctx, into, options...)
}

// ownPrefix begins the annotations that are kept.
const ownPrefix = "ingot.dev/"

// trimNode keeps what identity, verdict and gate need. A Node of a busy cluster shrinks from tens of kilobytes to a
// few, and a heartbeat changes nothing that is kept but the resourceVersion.
func trimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	trimMeta(&node.ObjectMeta)
	kept := corev1.NodeStatus{
		Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable, Conditions: node.Status.Conditions,
		Addresses: node.Status.Addresses, NodeInfo: node.Status.NodeInfo,
	}
	for i := range kept.Conditions {
		kept.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	node.Status = kept
	return node, nil
}

func trimSlice(object any) (any, error) {
	if slice, ok := object.(*resourcev1.ResourceSlice); ok {
		trimMeta(&slice.ObjectMeta)
		trimDevices(&slice.Spec)
	}
	return object, nil
}

func trimMeta(meta *metav1.ObjectMeta) {
	meta.ManagedFields = nil
	for key := range meta.Annotations {
		if !strings.HasPrefix(key, ownPrefix) {
			delete(meta.Annotations, key)
		}
	}
}
