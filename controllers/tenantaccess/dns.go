package tenantaccess

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Paths of what tells a cluster's DNS. A Role in kube-system with these two names is enough to read them.
const (
	dnsServicePath    = "/api/v1/namespaces/kube-system/services/kube-dns"
	kubeletConfigPath = "/api/v1/namespaces/kube-system/configmaps/kubelet-config"
)

// dnsInterval is how often a cluster is asked for its DNS, which nobody changes while nodes run.
const dnsInterval = time.Minute

// maxKubeletConfig is the limit of a kubelet's configuration that is kept, in bytes. kubeadm's has two kilobytes.
const maxKubeletConfig = 64 << 10

// DNSSources are what a tenant's cluster says of its DNS.
type DNSSources struct {
	// ServiceIPs are the cluster addresses of the Service kube-system/kube-dns.
	ServiceIPs []string
	// KubeletConfig is the KubeletConfiguration of the ConfigMap kube-system/kubelet-config.
	KubeletConfig string
	// Denied names what the kubeconfig's user may not get.
	Denied []string
}

// readDNS reads the sources. What does not exist, or may not be read, is left out. The error is that of a tenant that does not answer.
func (s *clientSet) readDNS() (DNSSources, error) {
	var out DNSSources
	var service corev1.Service
	var config corev1.ConfigMap
	for _, source := range []struct {
		path, name string
		into       any
	}{{dnsServicePath, "the Service kube-system/kube-dns", &service}, {kubeletConfigPath, "the ConfigMap kube-system/kubelet-config", &config}} {
		raw, err := s.prober.Get().AbsPath(source.path).Do(s.ctx).Raw()
		switch {
		case apierrors.IsForbidden(err):
			out.Denied = append(out.Denied, source.name)
		case apierrors.IsNotFound(err):
		case err != nil:
			return DNSSources{}, err
		case json.Unmarshal(raw, source.into) != nil:
			return DNSSources{}, errors.New("GET " + source.path + " answered something else")
		}
	}
	out.ServiceIPs = service.Spec.ClusterIPs
	if text := config.Data["kubelet"]; len(text) <= maxKubeletConfig {
		out.KubeletConfig = text
	}
	return out, nil
}

// observeDNS reads the sources when they were not read for a while, and reports whether they are others than before.
func (s *clientSet) observeDNS() (isChanged bool, err error) {
	now := s.options.Clock.Now()
	s.mu.Lock()
	isDue := s.dnsAt.IsZero() || now.Sub(s.dnsAt) >= dnsInterval
	s.mu.Unlock()
	if !isDue {
		return false, nil
	}
	found, err := s.readDNS()
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	isChanged = s.dnsAt.IsZero() || !s.dns.isEqual(found)
	s.dns, s.dnsAt = found, now
	return isChanged, nil
}

func (d DNSSources) isEqual(o DNSSources) bool {
	return slices.Equal(d.ServiceIPs, o.ServiceIPs) && d.KubeletConfig == o.KubeletConfig && slices.Equal(d.Denied, o.Denied)
}
