package tenantaccess

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
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

// Options say how a Registry treats each tenant. The zero value of a field is its default.
type Options struct {
	// Scheme of the tenants' objects; must know core and resource.k8s.io/v1.
	Scheme *runtime.Scheme
	// Clock times probes and back-off; default: the real one.
	Clock clock.Clock
	// Log takes what happens, never a credential.
	Log logr.Logger
	// Timeout of one request; default 10 s.
	Timeout time.Duration
	// QPS and Burst limit the direct calls to one tenant; default 50 and 100.
	QPS float32
	// Burst goes with QPS.
	Burst int
	// ProbeInterval is how often a tenant that answers is asked for its version; default 15 s.
	ProbeInterval time.Duration
	// Jitter gives numbers in [0, 1) that spread the probes; default: random.
	Jitter func() float64
}

// Access is how to work with one tenant. It stays valid as an object when the tenant is lost or its kubeconfig is
// replaced, but its calls then fail: ask the Registry anew in each reconcile.
type Access struct {
	// Cache reads watched objects: Nodes and, where SlicesServed, ResourceSlices, by name, label or, for slices, the fields
	// NodeNameField and PoolNameField. They are trimmed: change them by patch, never by update. Reading any other kind is an
	// error.
	Cache client.Reader
	// SlicesServed: the tenant serves resource.k8s.io/v1. Each probe asks anew, and TenantSource and NodeSource tell of a
	// change.
	SlicesServed bool
	// Client calls the tenant directly, under its own rate limit and time-outs.
	Client client.Client
	// Clientset does the same in client-go's form, for subresources and kubectl's drain helper.
	Clientset kubernetes.Interface
	// Server is the kubeconfig's server.
	Server string
	// CA is the PEM-encoded authority of the server's certificate.
	CA []byte
	// Version of the API server, as in v1.37.0.
	Version string
}

// Registry holds a client set per TenantCluster. Add it to the manager: Start ends every client set when the manager
// ends.
type Registry struct {
	options Options
	base    context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	hub     hub

	mu      sync.RWMutex
	tenants map[types.NamespacedName]*tenant
}

// tenant is what the registry knows of one TenantCluster: a client set, or why there is none.
type tenant struct {
	digest  [sha256.Size]byte
	clients *clientSet
	refused error
}

// New makes an empty Registry.
func New(options Options) *Registry {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
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
	if options.ProbeInterval <= 0 {
		options.ProbeInterval = 15 * time.Second
	}
	if options.Jitter == nil {
		options.Jitter = rand.Float64
	}
	base, stop := context.WithCancel(context.Background())
	return &Registry{options: options, base: base, stop: stop, tenants: map[types.NamespacedName]*tenant{}}
}

// Start waits for the end of ctx, then ends every client set and returns when their goroutines have ended.
func (r *Registry) Start(ctx context.Context) error {
	<-ctx.Done()
	// Under the lock, so that no Set adds to running while it is waited for.
	r.mu.Lock()
	r.stop()
	r.mu.Unlock()
	r.running.Wait()
	return nil
}

// For gives access to a tenant, or an *Error: also while its Nodes have not been read, and while it does not answer.
// It never waits.
func (r *Registry) For(key types.NamespacedName) (*Access, error) {
	r.mu.RLock()
	known := r.tenants[key]
	r.mu.RUnlock()
	if known == nil {
		return nil, &Error{Tenant: key, Reason: v1alpha1.ReasonKubeconfigMissing, Err: errors.New("no kubeconfig has been read")}
	}
	if known.refused != nil {
		return nil, known.refused
	}
	return known.clients.access()
}

// Set vets a kubeconfig and makes the client set of key from it; the same kubeconfig again changes nothing, another one
// replaces the client set. Set does not wait for the tenant: For tells how the first contact went. The error is an
// *Error that names the offending field and never quotes a value; the tenant then has no client set.
func (r *Registry) Set(_ context.Context, key types.NamespacedName, kubeconfig []byte) error {
	digest := sha256.Sum256(kubeconfig)
	r.mu.Lock()
	known := r.tenants[key]
	if known != nil && known.digest == digest {
		defer r.mu.Unlock()
		return known.refused
	}
	next := r.newTenant(key, digest, kubeconfig)
	r.tenants[key] = next
	r.mu.Unlock()
	known.end()
	return next.refused
}

// newTenant makes and starts a client set, or notes why not. The caller holds mu.
func (r *Registry) newTenant(key types.NamespacedName, digest [sha256.Size]byte, kubeconfig []byte) *tenant {
	next := &tenant{digest: digest}
	config, err := Vet(kubeconfig)
	if err == nil {
		next.clients, err = r.newClientSet(key, config)
	}
	if err != nil {
		next.refused = withTenant(err, key)
	} else if r.base.Err() == nil {
		r.running.Go(next.clients.run)
	}
	return next
}

// Remove ends the client set of key. It does not wait for its goroutines.
func (r *Registry) Remove(key types.NamespacedName) {
	r.mu.Lock()
	known := r.tenants[key]
	delete(r.tenants, key)
	r.mu.Unlock()
	known.end()
}

// clientSets lists those that are there now.
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

// end stops the client set and tells the subscribers. The registry must not be locked: they may ask it.
func (t *tenant) end() {
	if t != nil && t.clients != nil {
		t.clients.stop()
		t.clients.settle()
	}
}

// Error tells why a tenant cannot be used now.
type Error struct {
	// Tenant is the TenantCluster.
	Tenant types.NamespacedName
	// Reason is one of the reasons of TenantCluster's Ready condition.
	Reason string
	// Err says what was expected, what was seen and where to look.
	Err error
}

// Error names the tenant and the cause.
func (e *Error) Error() string {
	return fmt.Sprintf("TenantCluster %s: %s: %v", e.Tenant, e.Reason, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// classify finds the reason of a failed call to the tenant.
func classify(tenant types.NamespacedName, doing string, err error) *Error {
	reason := v1alpha1.ReasonTenantUnreachable
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		reason = v1alpha1.ReasonTenantUnauthorized
	}
	return &Error{Tenant: tenant, Reason: reason, Err: fmt.Errorf("%s: %w", doing, err)}
}
