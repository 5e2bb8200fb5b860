package tenantaccess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Back-off of a tenant that does not answer.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// failuresToLose: one probe may fail by chance; a second one right after it does not.
const failuresToLose = 2

// clientSet is everything that runs for one kubeconfig of one tenant.
type clientSet struct {
	key       types.NamespacedName
	options   Options
	hub       *hub
	log       logr.Logger
	config    *rest.Config
	transport *http.Transport
	direct    client.Client
	clientset *kubernetes.Clientset
	ctx       context.Context
	stop      context.CancelFunc

	mu       sync.Mutex
	version  string
	failures int
	failed   *Error
	answered bool
	nodes    *nodeCache
	streams  map[string]error
	usable   bool
}

func (r *Registry) newClientSet(key types.NamespacedName, config *rest.Config) (*clientSet, error) {
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(r.options.QPS, r.options.Burst)
	transport, err := newTransport(config, r.options.Timeout)
	if err != nil {
		return nil, err
	}
	httpClient, err := newHTTPClient(config, transport, deadlines{answer: r.options.Timeout, whole: r.options.Timeout})
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, invalid("client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, invalid("client: %w", err)
	}
	direct, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: r.options.Scheme, Mapper: mapper})
	if err != nil {
		return nil, invalid("client: %w", err)
	}
	ctx, stop := context.WithCancel(r.base)
	return &clientSet{
		key: key, options: r.options, hub: &r.hub, log: r.options.Log.WithValues("TenantCluster", key.String()),
		config: config, transport: transport, direct: direct, clientset: clientset,
		ctx: ctx, stop: stop, streams: map[string]error{},
	}, nil
}

// run probes until the client set is stopped. The cache starts with the first answer.
func (s *clientSet) run() {
	var parts sync.WaitGroup
	defer s.transport.CloseIdleConnections()
	defer parts.Wait()
	for s.ctx.Err() == nil {
		pause := s.probe(&parts)
		timer := s.options.Clock.NewTimer(pause)
		select {
		case <-s.ctx.Done():
			timer.Stop()
		case <-timer.C():
		}
	}
}

// probe asks for the version once and returns the time until the next probe.
func (s *clientSet) probe(parts *sync.WaitGroup) time.Duration {
	version, err := s.askVersion()
	if err == nil && !s.watches() {
		err = s.startCache(parts)
	}
	if s.ctx.Err() != nil {
		return 0
	}
	s.mu.Lock()
	if err != nil {
		s.failures++
		s.failed = classify(s.key, "ask "+s.config.Host+" what it serves", err)
	} else {
		s.failures, s.failed, s.answered, s.version = 0, nil, true, version
	}
	failures := s.failures
	s.mu.Unlock()
	s.settle()
	return s.pause(failures)
}

func (s *clientSet) askVersion() (string, error) {
	raw, err := s.clientset.RESTClient().Get().AbsPath("/version").Do(s.ctx).Raw()
	if err != nil {
		return "", err
	}
	return parseVersion(raw)
}

// pause grows from a second to a minute while probes fail, with up to a tenth more so that tenants spread.
func (s *clientSet) pause(failures int) time.Duration {
	pause := s.options.ProbeInterval
	if failures > 0 {
		pause = maxPause
		if shift := failures - 1; shift < 6 {
			pause = min(maxPause, firstPause<<shift)
		}
	}
	return pause + time.Duration(s.options.Jitter()*float64(pause)/10)
}

// access gives access, or the reason why not.
func (s *clientSet) access() (*Access, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.obstacle(); err != nil {
		return nil, err
	}
	return &Access{
		Cache: s.nodes.reader, SlicesServed: s.nodes.slices, Client: s.direct, Clientset: s.clientset,
		Server: s.config.Host, CA: s.config.CAData, Version: s.version,
	}, nil
}

// obstacle is why the tenant cannot be used; the caller holds mu.
func (s *clientSet) obstacle() error {
	if s.ctx.Err() != nil {
		return s.unreachable(errors.New("its kubeconfig was replaced or removed"))
	}
	if s.failed != nil && (s.failures >= failuresToLose || !s.answered) {
		return s.failed
	}
	for path, err := range s.streams {
		if err != nil {
			return classifyStream(s.key, path, err)
		}
	}
	if !s.answered {
		return s.unreachable(fmt.Errorf("%s has not answered yet", s.config.Host))
	}
	if s.nodes == nil || !s.nodes.synced {
		return s.unreachable(fmt.Errorf("the Nodes of %s have not been read yet", s.config.Host))
	}
	return nil
}

func (s *clientSet) unreachable(err error) *Error {
	return &Error{Tenant: s.key, Reason: v1alpha1.ReasonTenantUnreachable, Err: err}
}

// classifyStream finds the reason of a list or watch that fails.
func classifyStream(key types.NamespacedName, path string, err error) *Error {
	reason := v1alpha1.ReasonTenantUnreachable
	var status *statusError
	if errors.As(err, &status) && status.refused() {
		reason = v1alpha1.ReasonTenantUnauthorized
		err = fmt.Errorf("%w: the kubeconfig's user must be allowed to get, list and watch it", err)
	}
	return &Error{Tenant: key, Reason: reason, Err: fmt.Errorf("watch %s: %w", path, err)}
}

// settle tells the subscribers when the tenant became usable or was lost.
func (s *clientSet) settle() {
	s.mu.Lock()
	err := s.obstacle()
	changed := s.usable != (err == nil)
	s.usable = err == nil
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

// syncedCache is the cache once it was filled, else nil.
func (s *clientSet) syncedCache() *nodeCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil || !s.nodes.synced {
		return nil
	}
	return s.nodes
}

func (s *clientSet) watches() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes != nil
}
