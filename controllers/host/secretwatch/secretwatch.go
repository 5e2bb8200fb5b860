// Package secretwatch is the source of a controller's requests when a Secret in a namespace of hosts is made, changed or deleted. It keeps the name
// and the version of each Secret and never its content, and it leaves out the Secrets of claims, which the manager writes itself.
package secretwatch

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Change is what has happened to a Secret.
type Change struct {
	// Secret is its name.
	Secret client.ObjectKey
	// Version is its resource version; empty: it was deleted.
	Version string
	// IsFirstList is true for a Secret that was there when the watch of its namespace began.
	IsFirstList bool
}

// Source watches the Secrets of the namespaces that Begin names. Make one with New, and add it to the controller, which starts it.
type Source struct {
	manager  ctrl.Manager
	requests func(context.Context, Change) []reconcile.Request

	mu      sync.Mutex
	ctx     context.Context
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	watched map[string]context.CancelFunc
}

// New returns a Source that enqueues what the function returns for a change.
func New(manager ctrl.Manager, requests func(context.Context, Change) []reconcile.Request) *Source {
	return &Source{manager: manager, requests: requests, watched: map[string]context.CancelFunc{}}
}

// String returns the name of the source in logs.
func (s *Source) String() string { return "Secrets of hosts" }

// Start implements source.Source.
func (s *Source) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.queue = ctx, queue
	return nil
}

// Begin watches the Secrets of the namespace, if they are not watched already. It does not wait for the API server. Where the manager may not watch
// them, it tries again until End.
func (s *Source) Begin(namespace string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, isWatched := s.watched[namespace]; isWatched || s.ctx == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(s.ctx)
	if err := s.watch(ctx, namespace); err != nil {
		cancel()
		return fmt.Errorf("watch the Secrets of namespace %s: %w", namespace, err)
	}
	s.watched[namespace] = cancel
	return nil
}

// End ends the watch of a namespace that has no hosts of this installation any more.
func (s *Source) End(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, isWatched := s.watched[namespace]; isWatched {
		cancel()
		delete(s.watched, namespace)
	}
}

func (s *Source) watch(ctx context.Context, namespace string) error {
	ofClaim, err := labels.NewRequirement(v1alpha1.LabelMachine, selection.DoesNotExist, nil)
	if err != nil {
		return err
	}
	secrets, err := cache.New(s.manager.GetConfig(), cache.Options{
		HTTPClient: s.manager.GetHTTPClient(), Scheme: s.manager.GetScheme(), Mapper: s.manager.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultLabelSelector: labels.NewSelector().Add(*ofClaim),
		DefaultTransform: nameAndVersion, DefaultWatchErrorHandler: logger(namespace),
	})
	if err != nil {
		return err
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	informer, err := secrets.GetInformer(ctx, secret, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(s.handler(ctx)); err != nil {
		return err
	}
	go func() {
		if err := secrets.Start(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Watching Secrets of hosts", "namespace", namespace)
		}
	}()
	return nil
}

// handler enqueues the requests of each change. What a list repeats without a change enqueues nothing.
func (s *Source) handler(ctx context.Context) toolscache.ResourceEventHandler {
	changed := func(object any, isDeleted, isFirstList bool) {
		if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		secret, ok := object.(client.Object)
		if !ok || ctx.Err() != nil {
			return
		}
		change := Change{Secret: client.ObjectKeyFromObject(secret), Version: secret.GetResourceVersion(), IsFirstList: isFirstList}
		if isDeleted {
			change.Version = ""
		}
		for _, request := range s.requests(ctx, change) {
			s.queue.Add(request)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isFirstList bool) { changed(object, false, isFirstList) },
		UpdateFunc: func(before, after any) {
			was, ok1 := before.(client.Object)
			is, ok2 := after.(client.Object)
			if ok1 && ok2 && was.GetResourceVersion() != is.GetResourceVersion() {
				changed(after, false, false)
			}
		},
		DeleteFunc: func(object any) { changed(object, true, false) },
	}
}

// nameAndVersion is the transformation of what is kept in memory. Without it: kubectl apply writes the content of a Secret into its annotations too.
func nameAndVersion(object any) (any, error) {
	secret, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: secret.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
	}}, nil
}

// logger logs the failures of a watch. The permission that is missing is logged once, because the watch is tried again for ever.
func logger(namespace string) toolscache.WatchErrorHandlerWithContext {
	var once sync.Once
	return func(ctx context.Context, _ *toolscache.Reflector, err error) {
		log := ctrl.LoggerFrom(ctx).WithValues("namespace", namespace)
		if !apierrors.IsForbidden(err) {
			log.V(1).Info("A watch of Secrets of hosts ended", "reason", err.Error())
			return
		}
		once.Do(func() {
			log.Info("The Secrets of hosts cannot be watched, so a changed password is used only at the host's next regular reconcile: bind ClusterRole ingot-manager-hosts of this version in the namespace", "reason", err.Error())
		})
	}
}
