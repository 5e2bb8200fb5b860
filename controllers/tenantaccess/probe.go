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
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// newProber makes the probe's own client: a probe neither waits behind the callers' requests nor counts as one of them.
func newProber(config *rest.Config, transport http.RoundTripper, timeout time.Duration) (rest.Interface, error) {
	httpClient, err := newHTTPClient(config, transport, deadlines{answer: timeout, whole: timeout, size: maxProbe})
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

// run probes until the client set is stopped. The watches start with the first answer.
func (s *clientSet) run() {
	var parts sync.WaitGroup
	defer s.transport.CloseIdleConnections()
	defer parts.Wait()
	for s.ctx.Err() == nil {
		pause := s.probe(&parts)
		timer := s.options.Clock.NewTimer(pause)
		select {
		case <-s.ctx.Done():
		case <-s.silence:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// probe asks once for the version and for what is served, and returns the time until the next probe.
func (s *clientSet) probe(parts *sync.WaitGroup) time.Duration {
	version, err := s.askVersion()
	if err == nil {
		err = s.follow(parts)
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
	raw, err := s.prober.Get().AbsPath("/version").Do(s.ctx).Raw()
	if err != nil {
		return "", err
	}
	return ParseVersion(raw)
}

// ParseVersion reads what an API server answers to GET /version: its version, as in v1.37.0.
func ParseVersion(raw []byte) (string, error) {
	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil || info.GitVersion == "" {
		return "", errors.New("GET /version answered something that is no Kubernetes version")
	}
	return info.GitVersion, nil
}

func (s *clientSet) servesSlices() (bool, error) { return ServesSlices(s.ctx, s.prober) }

// ServesSlices asks an API server whether it serves the ResourceSlices of resource.k8s.io/v1, in which DRA drivers
// publish devices.
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

// fellSilent loses the tenant as soon as one of a caller's requests stays without an answer, and probes at once:
// whoever comes next must not wait as long again. A probe that succeeds brings the tenant back.
func (s *clientSet) fellSilent(path string, err error) {
	if !errors.Is(err, errSilent) || s.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	s.failures = max(s.failures, failuresToLose)
	s.failed = classify(s.key, "ask "+s.config.Host+" for "+path, err)
	s.mu.Unlock()
	s.settle()
	select {
	case s.silence <- struct{}{}:
	default:
	}
}
