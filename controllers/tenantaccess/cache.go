package tenantaccess

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeNameField is the field by which ResourceSlices can be listed from an Access's Cache.
const NodeNameField = "spec.nodeName"

// nodeCache is the watched part of a tenant.
type nodeCache struct {
	reader cache.Cache
	slices bool
	synced bool
}

// startCache finds out what the tenant serves and starts to watch it. It returns before anything was read.
func (s *clientSet) startCache(parts *sync.WaitGroup) error {
	slices, err := s.servesSlices()
	if err != nil {
		return err
	}
	reader, err := s.newCache(slices)
	if err != nil {
		return err
	}
	nodes := &nodeCache{reader: reader, slices: slices}
	if err := s.watch(nodes); err != nil {
		return err
	}
	s.mu.Lock()
	s.nodes = nodes
	s.mu.Unlock()
	parts.Go(func() {
		if err := reader.Start(s.ctx); err != nil {
			s.log.Error(err, "The cache ended")
		}
	})
	parts.Go(func() {
		if reader.WaitForCacheSync(s.ctx) {
			s.mu.Lock()
			nodes.synced = true
			s.mu.Unlock()
			s.settle()
		}
	})
	return nil
}

func (s *clientSet) servesSlices() (bool, error) {
	group := resourcev1.SchemeGroupVersion
	raw, err := s.clientset.RESTClient().Get().AbsPath("/apis/" + group.String()).Do(s.ctx).Raw()
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return len(raw) > 0, err
}

func (s *clientSet) newCache(slices bool) (cache.Cache, error) {
	httpClient, err := newHTTPClient(s.config, s.transport, deadlines{
		answer: s.options.Timeout, whole: listFactor * s.options.Timeout, watched: s.streamBegan,
	})
	if err != nil {
		return nil, err
	}
	byObject := map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: trimNode}}
	if slices {
		byObject[&resourcev1.ResourceSlice{}] = cache.ByObject{Transform: trimSlice}
	}
	return cache.New(s.config, cache.Options{
		HTTPClient: httpClient, Scheme: s.options.Scheme, Mapper: s.direct.RESTMapper(), ByObject: byObject,
		// Without it, reading a Secret from the cache would start to watch all of the tenant's Secrets.
		ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			s.log.V(1).Info("A watch ended", "reason", err.Error())
		},
	})
}

// watch adds the informers and their handlers.
func (s *clientSet) watch(nodes *nodeCache) error {
	informer, err := nodes.reader.GetInformer(s.ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch Nodes: %w", err)
	}
	if _, err := informer.AddEventHandler(nodeHandler(s)); err != nil {
		return fmt.Errorf("watch Nodes: %w", err)
	}
	if !nodes.slices {
		return nil
	}
	if err := nodes.reader.IndexField(s.ctx, &resourcev1.ResourceSlice{}, NodeNameField, sliceNode); err != nil {
		return fmt.Errorf("index ResourceSlices: %w", err)
	}
	informer, err = nodes.reader.GetInformer(s.ctx, &resourcev1.ResourceSlice{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch ResourceSlices: %w", err)
	}
	if _, err := informer.AddEventHandler(sliceHandler(s)); err != nil {
		return fmt.Errorf("watch ResourceSlices: %w", err)
	}
	return nil
}

func sliceNode(object client.Object) []string {
	if slice, ok := object.(*resourcev1.ResourceSlice); ok && slice.Spec.NodeName != nil {
		return []string{*slice.Spec.NodeName}
	}
	return nil
}

// streamBegan notes how a list or watch began. A watch that cannot be renewed makes what is cached stale, and stale
// is not synced.
func (s *clientSet) streamBegan(path string, err error) {
	if s.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	s.streams[path] = err
	s.mu.Unlock()
	s.settle()
}

func parseVersion(raw []byte) (string, error) {
	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil || info.GitVersion == "" {
		return "", fmt.Errorf("GET /version answered something that is no Kubernetes version")
	}
	return info.GitVersion, nil
}
