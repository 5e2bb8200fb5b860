package tenantaccess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// newProber creates the client of the probe. It has no rate limit, so that a probe does not wait for the callers' requests and does not
// delay them.
func newProber(config *rest.Config, transport http.RoundTripper, limits deadlines) (rest.Interface, error) {
	httpClient, err := newHTTPClient(config, transport, limits)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.RateLimiter, config.QPS = nil, -1
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	prober, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, invalid("client: %w", err)
	}
	return prober, nil
}

// run probes the tenant until the client set is stopped. The watches start after the first successful probe.
func (s *clientSet) run() {
	var parts sync.WaitGroup
	defer s.transport.CloseIdleConnections()
	defer s.account.close()
	defer parts.Wait()
	for s.ctx.Err() == nil {
		pause := max(s.suspension(), s.stallPause())
		if pause <= 0 {
			pause = s.probe(&parts)
		}
		timer := s.options.Clock.NewTimer(pause)
		select {
		case <-s.ctx.Done():
		case <-s.probeNow:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// probe reads the version and the served APIs once, and returns the time until the next probe.
func (s *clientSet) probe(parts *sync.WaitGroup) time.Duration {
	version, err := s.readVersion()
	var cluster types.UID
	if err == nil {
		cluster, err = s.readClusterUID()
	}
	isChanged := false
	if err == nil {
		isChanged, err = s.observeDNS()
	}
	if err == nil {
		err = s.watchServedKinds(parts)
	}
	if err == nil {
		for _, of := range s.allOptional() {
			s.observeOptional(parts, of)
		}
	}
	if s.ctx.Err() != nil {
		return 0
	}
	s.mu.Lock()
	switch {
	case err != nil:
		// A probe that finds no room beside other answers says nothing about the tenant.
		if !isCrowded(err) {
			s.failures++
		}
		s.failed = classify(s.key, "ask "+s.config.Host+" what it serves", err)
	case s.options.Clock.Now().Before(s.stalls.until):
		// A call has stalled while this probe was answered.
	default:
		s.failures, s.failed, s.answered, s.version = 0, nil, true, version
		isChanged = isChanged || s.clusterUID != cluster
		s.clusterUID = cluster
	}
	failures := s.failures
	s.mu.Unlock()
	s.updateUsable()
	if isChanged {
		s.hub.tenantChanged(s)
	}
	return s.probeDelay(failures)
}

func (s *clientSet) readVersion() (string, error) {
	result := s.prober.Get().AbsPath("/version").Do(s.ctx)
	raw, _ := result.Raw()
	var answered string
	err := result.Error()
	if err == nil {
		answered, err = ParseVersion(raw)
	}
	return answered, s.checkAnswer(err)
}

// maxVersion is the limit of a version, which is written into the status of objects.
const maxVersion = 128

// ParseVersion returns the version, such as v1.37.0, from an API server's response to GET /version.
func ParseVersion(raw []byte) (string, error) {
	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil || info.GitVersion == "" || len(info.GitVersion) > maxVersion {
		return "", errors.New("GET /version answered something that is no Kubernetes version")
	}
	return info.GitVersion, nil
}

func (s *clientSet) servesSlices() (bool, error) { return ServesSlices(s.ctx, s.prober) }

// ServesSlices tells whether an API server serves the ResourceSlices of resource.k8s.io/v1, in which DRA drivers publish devices.
func ServesSlices(ctx context.Context, server rest.Interface) (bool, error) {
	path := "/apis/" + resourcev1.SchemeGroupVersion.String()
	raw, err := server.Get().AbsPath(path).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var served metav1.APIResourceList
	if err := json.Unmarshal(raw, &served); err != nil {
		return false, fmt.Errorf("GET %s answered something that is no list of resources", path)
	}
	return slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == "resourceslices" }), nil
}

// probeDelay returns the time until the next probe. It grows from a second to a minute while probes fail. Up to a tenth is added, so
// that the probes of many tenants spread.
func (s *clientSet) probeDelay(failures int) time.Duration {
	pause := s.options.ProbeInterval
	if failures > 0 {
		pause = maxPause
		if shift := failures - 1; shift < 6 {
			pause = min(maxPause, firstPause<<shift)
		}
	}
	return pause + time.Duration(s.options.Jitter()*float64(pause)/10)
}

// reportProblem makes the tenant unusable when a request of a caller timed out, and starts a probe. Without it the next callers would
// each wait for the timeout. The tenant is usable again after a probe that succeeds, which is sent at once if no call has stalled for a
// while, and otherwise after a pause. A response that is too large ends the use of the tenant for longer.
func (s *clientSet) reportProblem(path string, err error) {
	s.reportExcess(path, err)
	if !errors.Is(err, errNoResponse) || s.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	s.failures = max(s.failures, failuresToLose)
	if pause := s.countStall(); pause > 0 && !isUnreached(err) {
		err = fmt.Errorf("%w; it answers probes, and %d calls after them have stalled: the cluster is not used meanwhile, and is tried again after %s", err, s.stalls.times, pause)
	}
	s.failed = classify(s.key, "ask "+s.config.Host+" for "+path, err)
	s.mu.Unlock()
	s.updateUsable()
	select {
	case s.probeNow <- struct{}{}:
	default:
	}
}

// reportExcess ends the use of the tenant for a while if a response is too large.
func (s *clientSet) reportExcess(path string, err error) {
	if cause := tooLarge(err); cause != nil {
		s.suspend("answers for "+path, cause)
	}
}
