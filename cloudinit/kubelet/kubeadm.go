package kubelet

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Paths of a node that kubeadm joins. Those of kubeadm's own files are fixed (cmd/kubeadm/app/constants).
const (
	pathJoinConfig   = "/etc/kubernetes/ingot-kubeadm-join.yaml"
	patchDirectory   = "/etc/kubernetes/ingot-kubeadm-patches"
	pathKubeletPatch = patchDirectory + "/kubeletconfiguration+merge.json"
	pathJoinUnit     = "/etc/systemd/system/" + JoinUnit

	kubeadmKubeconfig = "/etc/kubernetes/kubelet.conf"
	kubeadmBootstrap  = "/etc/kubernetes/bootstrap-kubelet.conf"
	kubeadmConfig     = "/var/lib/kubelet/config.yaml"
	kubeadmFlags      = "/var/lib/kubelet/kubeadm-flags.env"

	runtimeEndpoint = "unix:///run/containerd/containerd.sock"
)

// JoinUnit is the unit that runs kubeadm join.
const JoinUnit = "ingot-kubeadm-join.service"

// firstWithV1beta4 is the minor version of the first kubeadm that reads kubeadm.k8s.io/v1beta4; 1.36 is the last that reads v1beta3
// (cmd/kubeadm/app/util/config/common.go). kubeadm's version is at most three minor versions above kubelet's, so that kubelet's tells which one it reads.
const firstWithV1beta4 = 31

// joinUnit returns the unit that runs kubeadm join until the node has its certificate. Each try begins anew: kubeadm refuses to join over the files of
// a try that failed. Without it: the API server does not answer for a moment, kubeadm ends after it has written them, and every later try ends at once.
func joinUnit() string {
	return `[Unit]
Description=Join the cluster with kubeadm (written by Ingot)
Wants=network-online.target containerd.service
After=network-online.target containerd.service
ConditionPathExists=!` + kubeadmKubeconfig + `
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStartPre=-/bin/systemctl stop kubelet.service
ExecStartPre=/bin/rm -f ` + kubeadmBootstrap + " " + pathCA + `
ExecStart=/usr/bin/kubeadm join --config=` + pathJoinConfig + `
Restart=on-failure
RestartSec=10

[Install]
WantedBy=multi-user.target
`
}

// kubeletPatch returns the patch of the cluster's KubeletConfiguration, which kubeadm reads in the cluster and writes on the node.
func kubeletPatch(in Node) (string, error) {
	patch := map[string]any{"rotateCertificates": true}
	if in.ProviderID != "" {
		patch["providerID"] = in.ProviderID
	}
	if in.ServerTLSBootstrap {
		patch["serverTLSBootstrap"] = true
	}
	if len(in.ClusterDNS) > 0 {
		patch["clusterDNS"] = in.ClusterDNS
	}
	if in.ClusterDomain != "" {
		patch["clusterDomain"] = in.ClusterDomain
	}
	text, err := json.MarshalIndent(patch, "", "  ")
	return string(text) + "\n", err
}

// kubeadmFiles returns the files of a node that kubeadm joins, without the token.
func kubeadmFiles(in Node) ([]v1alpha1.NodeFile, error) {
	patch, err := kubeletPatch(in)
	if err != nil {
		return nil, fmt.Errorf("render kubeadm's patch: %w", err)
	}
	return []v1alpha1.NodeFile{
		{Path: pathKubeletPatch, Mode: "0644", Content: patch},
		{Path: pathJoinUnit, Mode: "0644", Content: joinUnit()},
	}, nil
}

type joinConfiguration struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Discovery  struct {
		BootstrapToken tokenDiscovery `yaml:"bootstrapToken"`
	} `yaml:"discovery"`
	NodeRegistration struct {
		Name      string  `yaml:"name"`
		CRISocket string  `yaml:"criSocket"`
		Taints    []taint `yaml:"taints"`
	} `yaml:"nodeRegistration"`
	Patches struct {
		Directory string `yaml:"directory"`
	} `yaml:"patches"`
}

type tokenDiscovery struct {
	Token    string   `yaml:"token"`
	Endpoint string   `yaml:"apiServerEndpoint"`
	CAHashes []string `yaml:"caCertHashes"`
}

// joinConfigFile returns kubeadm's JoinConfiguration. It is secret.
func joinConfigFile(in Node, join Join) (v1alpha1.NodeFile, error) {
	endpoint, err := hostPort(join.Endpoint)
	if err != nil {
		return v1alpha1.NodeFile{}, err
	}
	c := joinConfiguration{APIVersion: "kubeadm.k8s.io/v1beta4", Kind: "JoinConfiguration"}
	var minor int
	if _, err := fmt.Sscanf(in.Version, "1.%d.", &minor); err == nil && minor < firstWithV1beta4 {
		c.APIVersion = "kubeadm.k8s.io/v1beta3"
	}
	c.Discovery.BootstrapToken = tokenDiscovery{Token: join.Token, Endpoint: endpoint}
	if c.Discovery.BootstrapToken.CAHashes = join.CAHashes; len(join.CAHashes) == 0 {
		if c.Discovery.BootstrapToken.CAHashes, err = caHashes(join.CA); err != nil {
			return v1alpha1.NodeFile{}, err
		}
	}
	c.NodeRegistration.Name, c.NodeRegistration.CRISocket, c.NodeRegistration.Taints = in.Name, runtimeEndpoint, taints(in)
	c.Patches.Directory = patchDirectory
	text, err := encodeYAML(c)
	return v1alpha1.NodeFile{Path: pathJoinConfig, Mode: "0600", Content: text}, err
}

// hostPort returns the endpoint as kubeadm takes it.
func hostPort(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" || u.Path != "" && u.Path != "/" {
		return "", errors.New("kubeadm joins at https://HOST:PORT without a path: set the join's endpoint")
	}
	if u.Port() == "" {
		return strings.TrimSuffix(u.Host, ":") + ":443", nil
	}
	return u.Host, nil
}

// caHashes returns the pins of the authority's certificates: SHA-256 of their public keys (RFC 7469), one of which must be that of the published
// cluster-info. Without a pin kubeadm would trust whoever answers.
func caHashes(ca []byte) ([]string, error) {
	var out []string
	for block, rest := pem.Decode(ca); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("the kubeconfig's certificate authority cannot be read: kubeadm verifies the cluster by it")
		}
		hash := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
		out = append(out, "sha256:"+hex.EncodeToString(hash[:]))
	}
	if len(out) == 0 {
		return nil, errors.New("the kubeconfig has no certificate authority: kubeadm verifies the cluster by it")
	}
	return out, nil
}
