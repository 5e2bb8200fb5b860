package tenantaccess

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// NodeSource returns a source that enqueues the requests that toRequests returns for a Node when the Node or one of its ResourceSlices
// is added, changed or deleted, and when its tenant becomes usable or is lost. Heartbeats enqueue nothing. toRequests must not change
// the Node.
func (r *Registry) NodeSource(name string, toRequests func(tenant types.NamespacedName, node *corev1.Node) []reconcile.Request) source.Source {
	return &subscription{registry: r, name: name, ofNode: toRequests}
}

// TenantSource returns a source that enqueues the requests that toRequests returns for a tenant when the tenant becomes usable or is
// lost.
func (r *Registry) TenantSource(name string, toRequests func(tenant types.NamespacedName) []reconcile.Request) source.Source {
	return &subscription{registry: r, name: name, ofTenant: toRequests}
}

// subscription is the source of one controller.
type subscription struct {
	registry  *Registry
	name      string
	ofNode    func(types.NamespacedName, *corev1.Node) []reconcile.Request
	ofTenant  func(types.NamespacedName) []reconcile.Request
	ofRequest func(types.NamespacedName, string) []reconcile.Request
	ofClaim   func(tenant types.NamespacedName, before, after *resourcev1.ResourceClaim) []reconcile.Request
	delay     time.Duration
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// String returns the name of the source in logs.
func (s *subscription) String() string { return "tenants: " + s.name }

// Start subscribes the controller until ctx ends, and enqueues the requests of the existing tenants and Nodes.
func (s *subscription) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	active := *s
	active.queue = queue
	s.registry.hub.add(&active)
	context.AfterFunc(ctx, func() { s.registry.hub.remove(&active) })
	for _, set := range s.registry.clientSets() {
		active.tenantChanged(set)
	}
	return nil
}

func (s *subscription) send(requests []reconcile.Request) {
	for _, request := range requests {
		s.queue.Add(request)
	}
}

func (s *subscription) tenantChanged(set *clientSet) {
	if s.ofTenant != nil {
		s.send(s.ofTenant(set.key))
	}
	if s.ofRequest != nil {
		for _, node := range set.requestingNodes() {
			s.send(s.ofRequest(set.key, node))
		}
	}
	if s.ofNode != nil {
		for _, node := range set.cachedNodes() {
			s.send(s.ofNode(set.key, node))
		}
	}
}

// hub sends the events of all tenants to all subscriptions.
type hub struct {
	mu            sync.RWMutex
	subscriptions []*subscription
}

func (h *hub) add(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscriptions = append(h.subscriptions, s)
}

func (h *hub) remove(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var rest []*subscription
	for _, other := range h.subscriptions {
		if other != s {
			rest = append(rest, other)
		}
	}
	h.subscriptions = rest
}

func (h *hub) list() []*subscription {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.subscriptions[:len(h.subscriptions):len(h.subscriptions)]
}

func (h *hub) tenantChanged(set *clientSet) {
	for _, s := range h.list() {
		s.tenantChanged(set)
	}
}

func (h *hub) nodeChanged(tenant types.NamespacedName, node *corev1.Node) {
	for _, s := range h.list() {
		if s.ofNode != nil {
			s.send(s.ofNode(tenant, node))
		}
	}
}

func nodeHandler(s *clientSet) toolscache.ResourceEventHandler {
	changed := func(object any) {
		if node, ok := unwrapDeleted(object).(*corev1.Node); ok && s.ctx.Err() == nil {
			s.hub.nodeChanged(s.key, node)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed,
		UpdateFunc: func(before, after any) {
			if !isSameNode(before, after) {
				changed(after)
			}
		},
		DeleteFunc: changed,
	}
}

// sliceHandler sends the existing Nodes that a slice affects.
func sliceHandler(s *clientSet) toolscache.ResourceEventHandler {
	changed := func(object any) {
		slice, ok := unwrapDeleted(object).(*resourcev1.ResourceSlice)
		if !ok || s.ctx.Err() != nil {
			return
		}
		// Until the Nodes have been read there are none to send. All of them are sent afterwards.
		nodes := s.syncedNodes()
		if nodes == nil {
			return
		}
		for _, name := range affectedNodes(slice) {
			var node corev1.Node
			if nodes.Get(s.ctx, client.ObjectKey{Name: name}, &node) == nil {
				s.hub.nodeChanged(s.key, &node)
			}
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, after any) { changed(after) }, DeleteFunc: changed}
}

// isSameNode tells whether two trimmed Nodes differ only in the resourceVersion, which is so after a heartbeat.
func isSameNode(before, after any) bool {
	old, ok1 := before.(*corev1.Node)
	now, ok2 := after.(*corev1.Node)
	if !ok1 || !ok2 || old.ResourceVersion == now.ResourceVersion {
		return false
	}
	copied := *old
	copied.ResourceVersion = now.ResourceVersion
	return equality.Semantic.DeepEqual(&copied, now)
}

// unwrapDeleted returns the object. An informer wraps an object whose deletion it missed.
func unwrapDeleted(object any) any {
	if lost, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		return lost.Obj
	}
	return object
}

// cachedNodes returns the Nodes in the cache, also when the tenant is lost.
func (s *clientSet) cachedNodes() []*corev1.Node {
	nodes := s.syncedNodes()
	if nodes == nil {
		return nil
	}
	var list corev1.NodeList
	// A stopped cache can still be read.
	if err := nodes.List(context.WithoutCancel(s.ctx), &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	found := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
	}
	return found
}
