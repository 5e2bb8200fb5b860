package tenantaccess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Groups of the bearer of a bootstrap token that the manager makes.
const (
	// BootstrapGroup is Ingot's own, for tenants that give its nodes fewer rights than others.
	BootstrapGroup = "system:bootstrappers:ingot"
	// KubeadmBootstrapGroup is that of kubeadm's node tokens, which a cluster made by kubeadm lets join.
	KubeadmBootstrapGroup = "system:bootstrappers:kubeadm:default-node-token"
)

// The first and the longest pause between probes of a tenant that does not answer.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// failuresToLose is the number of consecutive failed probes after which a tenant is not usable. A single probe may fail by chance.
const failuresToLose = 2

// clientSet holds the clients, the caches and the probe for one kubeconfig of one tenant.
type clientSet struct {
	key       types.NamespacedName
	options   Options
	hub       *hub
	log       logr.Logger
	config    *rest.Config
	transport *http.Transport
	// wire hides the transport's errors, or wraps what does. causes limits the log of them.
	wire      http.RoundTripper
	causes    rate.Sometimes
	direct    client.Client
	clientset *kubernetes.Clientset
	prober    rest.Interface
	ctx       context.Context
	stop      context.CancelFunc
	// account counts what is kept of the tenant and what arrives from it.
	account *account
	// probeNow starts the next probe at once.
	probeNow chan struct{}

	// spare reads what the tenant is used without.
	spare client.Client

	mu      sync.Mutex
	version string
	// clusterUID is the uid of the cluster that answered last; empty: it is not known. expected is what Registry.Expect says.
	clusterUID, expected types.UID
	// dns is what the cluster says of its DNS, and dnsAt when it was read.
	dns   DNSSources
	dnsAt time.Time

	// clockAhead is how far the server's clock was ahead at the last probe.
	clockAhead time.Duration

	failures int
	failed   *Error
	answered bool
	nodes    *kindWatch
	// slices is nil if the tenant does not serve ResourceSlices.
	slices *kindWatch
	// requests are those for serving certificates, and claims those of devices, where they are wanted.
	requests, claims optional
	usable           bool
	// excess is set while the tenant is not used because it sent too much.
	excess excess
	// stalls is set while calls stall that follow probes which succeed.
	stalls stalls
}

func (r *Registry) newClientSet(key types.NamespacedName, config *rest.Config) (*clientSet, error) {
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(r.options.QPS, r.options.Burst)
	// The size of JSON in memory is estimated while it arrives; that of protobuf cannot be without knowing each type.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	// The warnings of a tenant's API server would be written to the manager's log.
	config.WarningHandler = rest.NoWarnings{}
	ctx, stop := context.WithCancel(r.base)
	s := &clientSet{
		key: key, options: r.options, hub: &r.hub, log: r.options.Log.WithValues("TenantCluster", key.String()),
		config: config, ctx: ctx, stop: stop, probeNow: make(chan struct{}, 1), expected: r.expected[key],
		causes:   rate.Sometimes{First: 1, Interval: time.Minute},
		requests: optional{kind: requestKind, wanted: r.wanted[optionalKey{key, requestKind.plural}]},
		claims:   optional{kind: claimKind, wanted: r.wanted[optionalKey{key, claimKind.plural}]},
	}
	s.account = r.book.open(key.Namespace, func(cause *tooLargeError) { s.suspend("what is kept of it", cause) })
	if err := s.connect(); err != nil {
		stop()
		s.account.close()
		return nil, err
	}
	return s, nil
}

// connect creates the clients. It sends no request to the tenant.
func (s *clientSet) connect() error {
	var err error
	if s.transport, err = newTransport(s.config, s.options.PrivateNetworks, s.options.Timeout); err != nil {
		return err
	}
	s.wire = s
	if s.options.WrapTransport != nil {
		s.wire = s.options.WrapTransport(s)
	}
	timeout := s.options.Timeout
	if s.prober, err = newProber(s.config, s.wire, deadlines{
		responseTimeout: timeout, totalTimeout: timeout, weight: maxProbeWeight, account: s.account,
		onResponse: s.reportExcess, onDate: s.noteDate,
	}); err != nil {
		return err
	}
	httpClient, err := newHTTPClient(s.config, s.wire, deadlines{
		responseTimeout: timeout, totalTimeout: timeout, weight: maxResponseWeight, account: s.account, refuse: s.lost, onResponse: s.reportProblem,
	})
	if err != nil {
		return err
	}
	if s.clientset, err = kubernetes.NewForConfigAndClient(s.config, httpClient); err != nil {
		return invalid("client: %w", err)
	}
	// The mapper is asked while a lost tenant is reached again, when other calls are still refused.
	mapperClient, err := newHTTPClient(s.config, s.wire, deadlines{
		responseTimeout: timeout, totalTimeout: timeout, weight: maxResponseWeight, account: s.account, onResponse: s.reportExcess,
	})
	if err != nil {
		return err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(s.config, mapperClient)
	if err != nil {
		return invalid("client: %w", err)
	}
	if s.direct, err = client.New(s.config, client.Options{HTTPClient: httpClient, Scheme: s.options.Scheme, Mapper: mapper}); err != nil {
		return invalid("client: %w", err)
	}
	spareClient, err := newHTTPClient(s.config, s.wire, deadlines{
		responseTimeout: timeout, totalTimeout: timeout, weight: maxResponseWeight, account: s.account, refuse: s.lost, isOptional: true,
	})
	if err != nil {
		return err
	}
	if s.spare, err = client.New(s.config, client.Options{HTTPClient: spareClient, Scheme: s.options.Scheme, Mapper: mapper}); err != nil {
		return invalid("client: %w", err)
	}
	return nil
}

// access returns the Access of the tenant, or the reason why it cannot be used.
func (s *clientSet) access() (*Access, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkUsable(); err != nil {
		return nil, err
	}
	read := reader{nodes: s.nodes.reader}
	if s.slices != nil {
		read.slices = s.slices.reader
	}
	if s.requests.watch != nil {
		read.requests = s.requests.watch.reader
	}
	if s.claims.watch != nil {
		read.claims = s.claims.watch.reader
	}
	return &Access{
		Cache: read, SlicesServed: s.slices != nil, Client: s.direct, Spare: s.spare, Clientset: s.clientset,
		Server: s.config.Host, CA: s.config.CAData, Version: s.version, ClusterUID: s.clusterUID, DNS: s.dns, ClockAhead: s.clockAhead,
		ServingRequests: s.requests.report(), WatchedClaims: s.claims.report(),
	}, nil
}

// checkUsable returns an error if the tenant cannot be used. The caller must hold mu.
func (s *clientSet) checkUsable() error {
	if s.ctx.Err() != nil {
		return s.unreachableError(errors.New("its kubeconfig was replaced or removed"))
	}
	if s.excess.err != nil && (s.isSuspended() || !s.isRead()) {
		return s.excess.err
	}
	if s.failed != nil && (s.failures >= failuresToLose || !s.answered) {
		return s.failed
	}
	if !s.answered || s.nodes == nil {
		return s.unreachableError(&unreachedError{server: s.config.Host})
	}
	if err := s.checkIdentity(); err != nil {
		return err
	}
	return s.checkWatches()
}

// checkWatches returns an error if what is watched is not known. The caller must hold mu.
func (s *clientSet) checkWatches() error {
	for _, w := range []*kindWatch{s.nodes, s.slices} {
		switch {
		case w == nil:
		case w.broken != nil:
			return classifyStream(s.key, w.path, w.broken)
		case !w.synced:
			return s.unreachableError(fmt.Errorf("the %s of %s have not been read yet", w.kind.plural, s.config.Host))
		}
	}
	return nil
}

func (s *clientSet) unreachableError(err error) *Error {
	return &Error{Tenant: s.key, Reason: v1alpha1.ReasonTenantUnreachable, Err: err}
}

// classifyStream returns the error for a list or watch request that failed.
func classifyStream(key types.NamespacedName, path string, err error) *Error {
	reason := v1alpha1.ReasonTenantUnreachable
	var status *statusError
	if errors.As(err, &status) && status.isDenied() {
		reason = v1alpha1.ReasonTenantUnauthorized
		err = fmt.Errorf("%w: the kubeconfig's user must be allowed to get, list and watch it", err)
	}
	return &Error{Tenant: key, Reason: reason, Err: describe("watch "+path, err)}
}

// isRead tells whether the tenant has answered and everything that is watched has been read. The caller must hold mu.
func (s *clientSet) isRead() bool {
	return s.answered && s.nodes != nil && s.nodes.synced && (s.slices == nil || s.slices.synced)
}

// updateUsable notifies the subscribers if the tenant became usable or stopped being usable.
func (s *clientSet) updateUsable() {
	s.mu.Lock()
	err := s.checkUsable()
	changed := s.usable != (err == nil)
	s.usable = err == nil
	if s.usable {
		s.excess.err = nil
	}
	s.mu.Unlock()
	if !changed {
		return
	}
	if err != nil {
		s.log.Info("Lost the tenant", "reason", err.Error())
	} else {
		s.log.Info("Reached the tenant")
	}
	s.hub.tenantChanged(s)
}

// syncedNodes returns the cache of Nodes, or nil if it has not synced yet.
func (s *clientSet) syncedNodes() client.Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil || !s.nodes.synced {
		return nil
	}
	return s.nodes.reader
}

// maxClockDifference is how far the clocks of two clusters may differ without a word: an answer's time has whole seconds, and an answer may be slow.
const maxClockDifference = time.Minute

// noteDate compares the server's clock with the management cluster's. A difference that stays about the same stays as it is.
func (s *clientSet) noteDate(date time.Time) {
	ahead := date.Sub(s.options.Now()).Round(time.Second)
	if ahead.Abs() <= maxClockDifference {
		ahead = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if (ahead - s.clockAhead).Abs() > maxClockDifference/6 {
		s.clockAhead = ahead
	}
}
