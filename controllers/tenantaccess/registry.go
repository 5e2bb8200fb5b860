package tenantaccess

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// DefaultMemory is the default of Options.Memory. It is enough for about three thousand Nodes of a cluster with feature discovery.
const DefaultMemory = 64 << 20

// Options are the settings of a Registry. The zero value of a field selects its default.
type Options struct {
	// Scheme is the scheme of the tenants' objects. It must have core and resource.k8s.io/v1.
	Scheme *runtime.Scheme
	// Clock is the clock for probes and back-off, which nobody sets; default: the real clock.
	Clock clock.Clock
	// Now is the time of the management cluster; default: that of Clock.
	Now func() time.Time
	// Log is the logger. No credentials are logged.
	Log logr.Logger
	// PrivateNetworks are those with addresses that are not public to which kubeconfigs may lead; default: none.
	PrivateNetworks []netip.Prefix
	// Timeout is the time limit of one request; default 10 s.
	Timeout time.Duration
	// QPS and Burst limit the direct calls to one tenant; default 50 and 100.
	QPS float32
	// Burst is the burst that belongs to QPS.
	Burst int
	// Memory is the limit of what is kept of one cluster, in bytes; default 64 MiB.
	Memory int64
	// TotalMemory is for all tenants together, in bytes: what is kept of them and what arrives from them. Default: five times Memory.
	TotalMemory int64
	// ProbeInterval is the time between probes of a tenant that answers; default 15 s.
	ProbeInterval time.Duration
	// WrapTransport, if set, wraps the transport of each tenant, for a record of the requests.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// Jitter returns numbers in [0, 1) that spread the probes; default: random numbers.
	Jitter func() float64
}

// Access has the clients of one tenant. After the tenant is lost or its kubeconfig is replaced, its calls fail: get it from the
// Registry in each reconcile.
type Access struct {
	// Cache reads Nodes and, if SlicesServed is true, ResourceSlices by name, by label or, for slices, by the fields NodeNameField
	// and PoolNameField. The objects are trimmed, so change them by patch and never by update. A read of any other kind is an error.
	Cache client.Reader
	// SlicesServed is true if the tenant serves resource.k8s.io/v1. Each probe reads it again, and TenantSource and NodeSource send
	// requests when it changes.
	SlicesServed bool
	// Client reads from and writes to the tenant's API server, with the tenant's rate limit and timeouts.
	Client client.Client
	// Spare reads what the tenant is used without: an answer that is too large, or none, is an error of that call and no more.
	Spare client.Reader
	// Clientset is the same as a client-go clientset, for subresources and kubectl's drain helper.
	Clientset kubernetes.Interface
	// Server is the server of the kubeconfig.
	Server string
	// CA is the PEM-encoded authority of the server's certificate.
	CA []byte
	// Version is the version of the API server, such as v1.37.0.
	Version string
	// ClusterUID is the uid of the Namespace kube-system, which identifies the cluster. It is empty where it may not be read.
	ClusterUID types.UID
	// DNS is what the cluster says of its DNS.
	DNS DNSSources
	// ClockAhead is how far the cluster's clock is ahead of the management cluster's, negative where it is behind; 0: less than a minute.
	ClockAhead time.Duration
	// ServingRequests says whether requests for serving certificates can be seen and approved, where WatchRequests has asked for them.
	ServingRequests OptionalWatch
	// WatchedClaims says whether ResourceClaims can be seen, where WatchClaims has asked for them.
	WatchedClaims OptionalWatch
}

// Registry holds a client set for each TenantCluster. Add it to the manager, so that Start stops every client set when the manager
// stops.
type Registry struct {
	options Options
	base    context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	hub     hub
	book    *book

	mu      sync.RWMutex
	tenants map[types.NamespacedName]*tenant
	// expected are the uids of the clusters that the kubeconfigs must lead to.
	expected map[types.NamespacedName]types.UID
	// wanted are the optional kinds that are watched.
	wanted map[optionalKey]bool
}

// tenant is the entry of one TenantCluster: a client set, or the error that its kubeconfig caused.
type tenant struct {
	digest  [sha256.Size]byte
	clients *clientSet
	err     error
}

// New returns an empty Registry.
func New(options Options) *Registry {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Now == nil {
		options.Now = options.Clock.Now
	}
	if options.Timeout <= 0 {
		options.Timeout = 10 * time.Second
	}
	if options.QPS <= 0 {
		options.QPS = 50
	}
	if options.Burst <= 0 {
		options.Burst = 100
	}
	if options.Memory <= 0 {
		options.Memory = DefaultMemory
	}
	if options.ProbeInterval <= 0 {
		options.ProbeInterval = 15 * time.Second
	}
	if options.Jitter == nil {
		options.Jitter = rand.Float64
	}
	base, stop := context.WithCancel(context.Background())
	return &Registry{options: options, base: base, stop: stop, book: newBook(options.Memory, options.TotalMemory), tenants: map[types.NamespacedName]*tenant{}}
}

// Start waits until ctx ends, then stops every client set and returns when their goroutines have ended.
func (r *Registry) Start(ctx context.Context) error {
	<-ctx.Done()
	// The lock is held so that Set does not add a goroutine to running while Wait is called.
	r.mu.Lock()
	r.stop()
	r.mu.Unlock()
	r.running.Wait()
	return nil
}

// For returns the Access of a tenant, or an *Error if it cannot be used, for example while its Nodes have not been read or while it does
// not answer. It never waits.
func (r *Registry) For(key types.NamespacedName) (*Access, error) {
	r.mu.RLock()
	known := r.tenants[key]
	r.mu.RUnlock()
	if known == nil {
		return nil, &Error{Tenant: key, Reason: v1alpha1.ReasonKubeconfigMissing, Err: errors.New("no kubeconfig has been read")}
	}
	if known.err != nil {
		return nil, known.err
	}
	return known.clients.access()
}

// Set vets a kubeconfig and creates the client set of key from it. If the kubeconfig is the same as before it changes nothing, otherwise
// it replaces the client set. Set does not wait for the tenant: For returns the result of the first contact. The error is an *Error
// that names the offending field and never quotes a value. The tenant then has no client set.
func (r *Registry) Set(_ context.Context, key types.NamespacedName, kubeconfig []byte) error {
	digest := sha256.Sum256(kubeconfig)
	r.mu.Lock()
	known := r.tenants[key]
	if known != nil && known.digest == digest {
		defer r.mu.Unlock()
		return known.err
	}
	next := r.newTenant(key, digest, kubeconfig)
	r.tenants[key] = next
	r.mu.Unlock()
	known.stop()
	return next.err
}

// newTenant creates and starts a client set, or records the error. The caller must hold mu.
func (r *Registry) newTenant(key types.NamespacedName, digest [sha256.Size]byte, kubeconfig []byte) *tenant {
	next := &tenant{digest: digest}
	config, err := Vet(kubeconfig)
	if err == nil {
		next.clients, err = r.newClientSet(key, config)
	}
	if err != nil {
		next.err = withTenant(err, key)
	} else if r.base.Err() == nil {
		r.running.Go(next.clients.run)
	}
	return next
}

// Remove stops the client set of key. It does not wait for its goroutines.
func (r *Registry) Remove(key types.NamespacedName) {
	r.mu.Lock()
	known := r.tenants[key]
	delete(r.tenants, key)
	delete(r.expected, key)
	maps.DeleteFunc(r.wanted, func(of optionalKey, _ bool) bool { return of.tenant == key })
	r.mu.Unlock()
	known.stop()
}

// clientSets returns the client sets of all tenants.
func (r *Registry) clientSets() []*clientSet {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var sets []*clientSet
	for _, known := range r.tenants {
		if known.clients != nil {
			sets = append(sets, known.clients)
		}
	}
	return sets
}

// stop stops the client set and notifies the subscribers. The caller must not hold mu, because the subscribers may call the registry.
func (t *tenant) stop() {
	if t != nil && t.clients != nil {
		t.clients.stop()
		t.clients.updateUsable()
	}
}

// Error is the reason why a tenant cannot be used.
type Error struct {
	// Tenant is the TenantCluster.
	Tenant types.NamespacedName
	// Reason is one of the reasons of TenantCluster's Ready condition.
	Reason string
	// Err is the cause: what was expected, what was found, and where to look.
	Err error
}

// Error returns the tenant, the reason and the cause.
func (e *Error) Error() string {
	return fmt.Sprintf("TenantCluster %s: %s: %v", e.Tenant, e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// classify returns the error for a request to the tenant that failed.
func classify(tenant types.NamespacedName, doing string, err error) *Error {
	reason := v1alpha1.ReasonTenantUnreachable
	if !isUnreached(err) && (apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)) {
		reason = v1alpha1.ReasonTenantUnauthorized
	}
	return &Error{Tenant: tenant, Reason: reason, Err: describe(doing, err)}
}

// IsAnswer tells whether err is an answer of an API server, and not a failure to get one.
func IsAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}
