package join

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Where a cluster says which DNS its pods use. kubeadm keeps the Service's name whatever its DNS server is (k8s.io/docs, "Using CoreDNS for
// Service Discovery"), and writes the configuration of its kubelets into the ConfigMap.
const (
	serviceName       = "Service kube-system/kube-dns"
	kubeletConfigName = "ConfigMap kube-system/kubelet-config"
)

// kubeletConfigBounds are those of a KubeletConfiguration, which has some hundred fields.
var kubeletConfigBounds = input.Bounds{Bytes: 64 << 10, Depth: 20, Elements: 4096}

// maxAddresses is how many DNS addresses are used: a resolv.conf has three (resolv.conf(5), MAXNS).
const maxAddresses = 3

// Sources are what a cluster says of its DNS, as its owner wrote it.
type Sources struct {
	// ServiceIPs are the cluster addresses of the DNS Service.
	ServiceIPs []string
	// KubeletConfig is the configuration of the cluster's own kubelets.
	KubeletConfig string
	// Denied names what the kubeconfig's user may not read.
	Denied []string
}

// FindDNS returns the DNS that the sources tell. The kubelets' own configuration is asked first: it has the node-local cache of a cluster that uses
// one. What cannot be read says nothing.
func FindDNS(from Sources) v1alpha1.ClusterDNS {
	var config struct {
		ClusterDNS    []string `json:"clusterDNS"`
		ClusterDomain string   `json:"clusterDomain"`
	}
	var out v1alpha1.ClusterDNS
	text := []byte(from.KubeletConfig)
	if input.CheckYAML(text, kubeletConfigBounds) == nil && yaml.Unmarshal(text, &config) == nil {
		out.Addresses = addresses(config.ClusterDNS)
		if domain := strings.TrimSuffix(config.ClusterDomain, "."); len(validation.IsDNS1123Subdomain(domain)) == 0 {
			out.Domain = domain
		}
	}
	if len(out.Addresses) == 0 {
		out.Addresses = addresses(from.ServiceIPs) // those of a headless Service are no addresses
	}
	return out
}

// addresses returns those of the texts that are addresses, and no more than a node can use.
func addresses(texts []string) []string {
	var out []string
	for _, text := range texts {
		if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" && len(out) < maxAddresses {
			out = append(out, ip.String())
		}
	}
	return out
}

// Remarks returns what the owner of a TenantCluster must know of its join, although nothing is refused for it. endpoint is what nodes are given.
func Remarks(tenant *v1alpha1.TenantCluster, endpoint string, from Sources) []string {
	var out []string
	if IsLoopback(endpoint) {
		out = append(out, endpoint+" is a node's own address when a node asks for it: set the join's endpoint to what nodes reach, unless they run where the API server does")
	}
	dns := tenant.NodeDNS()
	if len(dns.Addresses) == 0 {
		out = append(out, unknownDNS(from))
	}
	return append(out, addressRemarks(dns.Addresses, addresses(from.ServiceIPs))...)
}

// unknownDNS says that nodes get no cluster DNS.
func unknownDNS(from Sources) string {
	text := "pods on its nodes will resolve no Service, because the cluster's DNS is not known: the " + serviceName + " and the " + kubeletConfigName + " do not tell it. Set spec.clusterDNS"
	if len(from.Denied) > 0 {
		text += ", or let the kubeconfig's user get " + strings.Join(from.Denied, " and ") + ", as the Role that ingot tenant add --tenant-side prints does"
	}
	return text
}

// addressRemarks says which addresses are not those of the cluster's DNS Service.
func addressRemarks(addresses, service []string) []string {
	var out []string
	for _, text := range addresses {
		ip, err := netip.ParseAddr(text)
		switch {
		case err != nil:
		case ip.Unmap().IsLinkLocalUnicast():
			// NodeLocal DNSCache listens on 169.254.20.10 by default (k8s.io/docs, "Using NodeLocal DNSCache").
			out = append(out, "the DNS address "+text+" is link-local, as of NodeLocal DNSCache: pods on a node resolve names once its DaemonSet runs there, so it must tolerate the gate")
		case len(service) > 0 && !slices.Contains(service, ip.String()):
			out = append(out, fmt.Sprintf("the DNS address %s is not that of the %s, %s: pods resolve names only if a DNS server of the cluster answers there", text, serviceName, strings.Join(service, ", ")))
		}
	}
	return out
}
