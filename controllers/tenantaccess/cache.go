package tenantaccess

import (
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeNameField is the field by which ResourceSlices of a Node can be listed from an Access's Cache.
const NodeNameField = "spec.nodeName"

// kind describes one kind of object that is watched.
type kind struct {
	// plural is the name of the kind in messages and logs.
	plural string
	object client.Object
	// trim returns the part of an object that is kept, and nil for an object of another kind.
	trim func(runtime.Object) client.Object
	// page is how many objects are asked for at once where they are listed.
	page    int64
	handler func(*clientSet) toolscache.ResourceEventHandler
	indexes map[string]client.IndexerFunc
	// selector chooses the objects; nil: all.
	selector fields.Selector
	// isOptional is true if the tenant is used also without the kind. rights are what it then needs.
	isOptional bool
	rights     []authorizationv1.ResourceAttributes
}

var (
	nodeKind  = kind{plural: "Nodes", object: &corev1.Node{}, trim: trimmed(trimNode), page: 20, handler: nodeHandler}
	sliceKind = kind{
		plural: "ResourceSlices", object: &resourcev1.ResourceSlice{}, trim: trimmed(trimSlice), page: 4, handler: sliceHandler,
		indexes: map[string]client.IndexerFunc{NodeNameField: sliceNode, PoolNameField: slicePool},
	}
)

// kindWatch is the watch of one kind in one tenant. The mu of the client set guards synced, path and broken.
type kindWatch struct {
	kind   kind
	reader cache.Cache
	ledger *ledger
	ctx    context.Context
	stop   context.CancelFunc
	synced bool
	// broken is why the last list or watch request at path failed. It is nil if the request succeeded.
	broken error
	path   string
	// crowded is how many requests in a row have failed for want of room.
	crowded int
}

// watchServedKinds starts the watch of Nodes, and starts or stops the watch of ResourceSlices as the tenant serves resource.k8s.io/v1
// or not. It does not wait for the caches to sync.
func (s *clientSet) watchServedKinds(parts *sync.WaitGroup) error {
	served, err := s.servesSlices()
	if err != nil {
		return err
	}
	s.mu.Lock()
	nodes, slices := s.nodes, s.slices
	s.mu.Unlock()
	if nodes == nil {
		if nodes, err = s.startWatch(parts, nodeKind); err != nil {
			return err
		}
	}
	gone := slices != nil && !served
	switch {
	case gone:
		stopWatches(slices)
		slices = nil
	case slices == nil && served:
		if slices, err = s.startWatch(parts, sliceKind); err != nil {
			return err
		}
	}
	if err := s.setWatches(nodes, slices); err != nil {
		return err
	}
	if gone {
		s.hub.tenantChanged(s)
	}
	return nil
}

// setWatches records the watches. If one of them was too large meanwhile, it stops them.
func (s *clientSet) setWatches(nodes, slices *kindWatch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isSuspended() {
		stopWatches(nodes, slices)
		return s.excess.err
	}
	s.nodes, s.slices = nodes, slices
	return nil
}

// stopWatches stops watches and forgets the sizes of their objects. A watch may be nil.
func stopWatches(watches ...*kindWatch) {
	for _, w := range watches {
		if w != nil {
			w.stop()
			w.ledger.close()
		}
	}
}

// startWatch starts the watch of a kind.
func (s *clientSet) startWatch(parts *sync.WaitGroup, k kind) (*kindWatch, error) {
	w := &kindWatch{kind: k, ledger: &ledger{account: s.account, plural: k.plural, sizes: map[string]int64{}}}
	w.ctx, w.stop = context.WithCancel(s.ctx)
	if err := s.openCache(w); err != nil {
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
			s.updateUsable()
			if k.isOptional {
				s.hub.optionalRead(s)
			}
		}
	})
	return w, nil
}

// openCache creates the cache of a kind with its indexes and its event handler.
func (s *clientSet) openCache(w *kindWatch) error {
	httpClient, err := newHTTPClient(s.config, s.wire, deadlines{
		responseTimeout: s.options.Timeout, totalTimeout: listFactor * s.options.Timeout, weight: maxResponseWeight, account: s.account, isOptional: w.kind.isOptional,
		onResponse: func(path string, err error) { s.recordWatchStart(w, path, err) },
	})
	if err != nil {
		return err
	}
	w.reader, err = cache.New(s.config, cache.Options{
		HTTPClient: httpClient, Scheme: s.options.Scheme, Mapper: s.direct.RESTMapper(),
		NewInformer: func(from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(newMeteredListerWatcher(s, w, from), object, resync, indexers)
		},
		// Without this option, the first read of a Secret from the cache would start a watch of all Secrets of the tenant.
		ReaderFailOnMissingInformer: true,
		ByObject:                    map[client.Object]cache.ByObject{w.kind.object: {Field: w.kind.selector}},
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

// sparedRenewals is how often in a row a watch may fail to be renewed for want of room before its cache counts as stale. client-go waits longer each
// time, so that they are some seconds.
const sparedRenewals = 3

// recordWatchStart records whether a list or watch request succeeded. While a watch cannot be renewed its cache is stale, and the
// tenant is not usable.
func (s *clientSet) recordWatchStart(w *kindWatch, path string, err error) {
	if w.ctx.Err() != nil {
		return
	}
	if cause := tooLarge(err); cause != nil {
		s.exceed(w, "watch "+path, cause)
		return
	}
	s.mu.Lock()
	if w.crowded++; !isCrowded(err) {
		w.crowded = 0
	}
	// What was read is as true as a moment ago. Without it: two namespaces take all the room, and each other tenant whose watch is renewed then counts as
	// unreachable.
	if isSpared := w.synced && w.crowded > 0 && w.crowded <= sparedRenewals; !isSpared {
		w.path, w.broken = path, err
	}
	s.mu.Unlock()
	s.updateUsable()
}

// reader reads each kind from its cache. If that of a kind is nil, a read of it is an error, like a read of any kind that is not watched.
type reader struct{ nodes, slices, requests, claims client.Reader }

// readerFor returns the cache of the kind of an object or of a list.
func (r reader) readerFor(of runtime.Object) client.Reader {
	chosen := r.nodes
	switch of.(type) {
	case *resourcev1.ResourceSlice, *resourcev1.ResourceSliceList:
		chosen = r.slices
	case *certificatesv1.CertificateSigningRequest, *certificatesv1.CertificateSigningRequestList:
		chosen = r.requests
	case *resourcev1.ResourceClaim, *resourcev1.ResourceClaimList:
		chosen = r.claims
	}
	if chosen == nil {
		return r.nodes
	}
	return chosen
}

// Get implements client.Reader.
func (r reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return r.readerFor(into).Get(ctx, key, into, options...)
}

// List implements client.Reader.
func (r reader) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return r.readerFor(into).List(ctx, into, options...)
}
