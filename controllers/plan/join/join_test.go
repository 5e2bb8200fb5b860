package join

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestEndpointsOfOneMachineAreTold(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://127.0.0.1:6443": "loopback", "https://[::1]:6443": "loopback", "https://LOCALHOST.": "loopback", "https://api.localhost": "loopback",
		"https://0.0.0.0:6443": "loopback", "https://[::ffff:127.0.0.1]": "loopback",
		"https://169.254.169.254": "link-local", "https://[fe80::1%25eth0]:6443": "link-local", "https://[::ffff:169.254.0.1]:6443": "link-local",
		"https://10.0.0.1:6443": "", "https://tenant.example.com": "", "https://localhost.example.com": "", "%": "",
	} {
		got := ""
		switch {
		case IsLoopback(endpoint):
			got = "loopback"
		case IsLinkLocal(endpoint):
			got = "link-local"
		}
		if got != want {
			t.Errorf("%s: %q, expected %q", endpoint, got, want)
		}
	}
}

func TestTheDNSOfACluster(t *testing.T) {
	for name, c := range map[string]struct {
		from Sources
		want v1alpha1.ClusterDNS
	}{
		"nothing":            {},
		"the Service":        {Sources{ServiceIPs: []string{"10.96.0.10", "fd00::a"}}, v1alpha1.ClusterDNS{Addresses: []string{"10.96.0.10", "fd00::a"}}},
		"a headless Service": {from: Sources{ServiceIPs: []string{"None"}}},
		"kubelets with the node-local cache": {
			Sources{ServiceIPs: []string{"10.96.0.10"}, KubeletConfig: "clusterDNS: [169.254.20.10]\nclusterDomain: tenant.example.\n"},
			v1alpha1.ClusterDNS{Addresses: []string{"169.254.20.10"}, Domain: "tenant.example"}},
		"a domain alone":           {Sources{ServiceIPs: []string{"10.96.0.10"}, KubeletConfig: "clusterDomain: a.b\n"}, v1alpha1.ClusterDNS{Addresses: []string{"10.96.0.10"}, Domain: "a.b"}},
		"what is no configuration": {Sources{ServiceIPs: []string{"10.96.0.10"}, KubeletConfig: "{"}, v1alpha1.ClusterDNS{Addresses: []string{"10.96.0.10"}}},
		"what a hostile tenant writes": {
			from: Sources{KubeletConfig: "clusterDNS: ['fe80::1%x', 'a b', '10.0.0.1; rm']\nclusterDomain: 'a b'\n"}},
		"what expands to much": {
			from: Sources{KubeletConfig: "clusterDNS: [10.0.0.1]\na: &a [" + strings.Repeat("x, ", 1000) + "x]\nb: [" + strings.Repeat("*a, ", 10) + "*a]\n"}},
		"more than a node uses": {Sources{ServiceIPs: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}}, v1alpha1.ClusterDNS{Addresses: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}}},
	} {
		if diff := cmp.Diff(c.want, FindDNS(c.from)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestWhatTheOwnerOfATenantMustKnow(t *testing.T) {
	service := Sources{ServiceIPs: []string{"10.96.0.10"}}
	for name, c := range map[string]struct {
		dns      []string
		endpoint string
		from     Sources
		want     string
	}{
		"nothing":            {dns: []string{"10.96.0.10"}, from: service},
		"loopback":           {[]string{"10.96.0.10"}, "https://127.0.0.1:6443", service, "https://127.0.0.1:6443 is a node's own address"},
		"no DNS":             {want: "will resolve no Service"},
		"DNS not allowed":    {from: Sources{Denied: []string{"the Service kube-system/kube-dns"}}, want: "let the kubeconfig's user get the Service kube-system/kube-dns, as the Role"},
		"the node's cache":   {dns: []string{"169.254.20.10"}, from: service, want: "169.254.20.10 is link-local, as of NodeLocal DNSCache"},
		"another address":    {dns: []string{"8.8.8.8"}, from: service, want: "8.8.8.8 is not that of the Service kube-system/kube-dns, 10.96.0.10"},
		"nothing to compare": {dns: []string{"8.8.8.8"}},
	} {
		tenant := &v1alpha1.TenantCluster{Spec: v1alpha1.TenantClusterSpec{ClusterDNS: c.dns}}
		got := strings.Join(Remarks(tenant, c.endpoint, c.from), "|")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
	}
}

func TestTheSpecsDNSIsUsedAndWhatItLeavesOutIsFound(t *testing.T) {
	tenant := &v1alpha1.TenantCluster{}
	if diff := cmp.Diff(v1alpha1.ClusterDNS{}, tenant.NodeDNS()); diff != "" {
		t.Error("a cluster whose DNS nobody knows:", diff)
	}
	tenant.Status.ClusterDNS = &v1alpha1.ClusterDNS{Addresses: []string{"10.96.0.10"}}
	if diff := cmp.Diff(v1alpha1.ClusterDNS{Addresses: []string{"10.96.0.10"}, Domain: "cluster.local"}, tenant.NodeDNS()); diff != "" {
		t.Error("found, without a domain:", diff)
	}
	tenant.Spec.ClusterDomain = "tenant.example"
	tenant.Spec.ClusterDNS = []string{"169.254.20.10"}
	if diff := cmp.Diff(v1alpha1.ClusterDNS{Addresses: []string{"169.254.20.10"}, Domain: "tenant.example"}, tenant.NodeDNS()); diff != "" {
		t.Error("of the spec:", diff)
	}
}

func TestAJoinThatCannotBeIsTold(t *testing.T) {
	kubeadm, ca := v1alpha1.JoinSpec{Kubeadm: &v1alpha1.EndpointJoin{}}, []byte("ca")
	for name, c := range map[string]struct {
		join     v1alpha1.JoinSpec
		endpoint string
		ca       []byte
		want     string
	}{
		"tlsBootstrap":        {v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}, "https://a/b", nil, ""},
		"kubeadm":             {kubeadm, "https://a:6443", ca, ""},
		"kubeadm with a path": {kubeadm, "https://a/b", ca, "spec.join.kubeadm.endpoint: "},
		"kubeadm without CA":  {kubeadm, "https://a", nil, "spec.join.kubeadm: kubeadm verifies"},
		"script":              {v1alpha1.JoinSpec{Script: &v1alpha1.ScriptJoin{}}, "https://a/b", nil, ""},
		"a link-local server": {v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}, "https://169.254.169.254", ca, "spec.join.tlsBootstrap.endpoint: nodes are given "},
		"one of a script":     {v1alpha1.JoinSpec{Script: &v1alpha1.ScriptJoin{}}, "https://[::ffff:a9fe:1]:6443", nil, "spec.join.script.endpoint: nodes are given "},
	} {
		if got := Problem(c.join, c.endpoint, c.ca); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
	}
}
