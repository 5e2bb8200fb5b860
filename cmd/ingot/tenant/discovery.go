package tenant

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/cloudinit/kubelet/fragment"
	"github.com/ingot-dev/ingot/controllers/plan/join"
)

// discoveryError says what kubeadm would not find in the cluster, and who must do what.
type discoveryError struct{ text string }

func (e *discoveryError) Error() string { return e.text }

func lacking(format string, args ...any) error { return &discoveryError{fmt.Sprintf(format, args...)} }

// signaturePrefix begins the keys of the signatures in cluster-info; the id of the token follows.
const signaturePrefix = "jws-kubeconfig-"

// discover does what kubeadm join does before it asks for a certificate: it reads the public cluster-info without credentials, verifies it by the token
// and by the kubeconfig's authority, and reads with the token what kubeadm left for nodes.
func (t *tenant) discover(ctx context.Context, node kubernetes.Interface, id, secret string) error {
	anonymous, err := kubernetes.NewForConfig(t.nodeConfig(""))
	if err != nil {
		return err
	}
	info, err := t.signedClusterInfo(ctx, anonymous, id)
	if err != nil {
		return err
	}
	if !isSigned(info["kubeconfig"], info[signaturePrefix+id], secret) {
		return lacking("the signature of ConfigMap kube-public/cluster-info is not by the token, so that kubeadm would trust nobody: see that nothing between here and the API server changes answers")
	}
	if err := t.checkDiscovered(info["kubeconfig"]); err != nil {
		return err
	}
	return t.readKubeadmsConfiguration(ctx, node)
}

// signedClusterInfo reads cluster-info as anybody does, and waits until it is signed for the token.
func (t *tenant) signedClusterInfo(ctx context.Context, anonymous kubernetes.Interface, id string) (map[string]string, error) {
	var data map[string]string
	err := wait.PollUntilContextTimeout(ctx, pollInterval, t.issueTimeout/4, true, func(ctx context.Context) (bool, error) {
		info, err := anonymous.CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		data = info.Data
		return data[signaturePrefix+id] != "", nil
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, lacking("there is no ConfigMap kube-public/cluster-info, by which kubeadm finds the cluster: an administrator of that cluster runs kubeadm init phase bootstrap-token, or join by tlsBootstrap")
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return nil, lacking("ConfigMap kube-public/cluster-info may not be read without credentials, as kubeadm does: an administrator of that cluster runs kubeadm init phase bootstrap-token, and leaves anonymous requests to it allowed")
	case wait.Interrupted(err) && ctx.Err() == nil:
		return nil, lacking("ConfigMap kube-public/cluster-info is not signed for a new token: start kube-controller-manager with --controllers=*,bootstrapsigner,tokencleaner")
	}
	return data, err
}

// isSigned reports whether the signature is that of the content by a token: a JWS by HMAC SHA-256 whose content is left out (RFC 7515, appendix F).
func isSigned(content, signature, secret string) bool {
	parts := strings.Split(signature, ".")
	if len(parts) != 3 {
		return false
	}
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte(parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(content))))
	got, err := base64.RawURLEncoding.DecodeString(parts[2])
	return err == nil && hmac.Equal(got, sum.Sum(nil))
}

// checkDiscovered compares the discovered authority with the one that nodes are given the pins of, and tells the server that nodes will use.
func (t *tenant) checkDiscovered(kubeconfig string) error {
	discovered, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil || len(discovered.Clusters) != 1 {
		return lacking("ConfigMap kube-public/cluster-info has no kubeconfig with one cluster: an administrator of that cluster runs kubeadm init phase bootstrap-token")
	}
	pins := publicKeys(t.config.CAData)
	for _, cluster := range discovered.Clusters {
		matches := false
		for key := range publicKeys(cluster.CertificateAuthorityData) {
			matches = matches || pins[key]
		}
		if !matches {
			return lacking("ConfigMap kube-public/cluster-info has another certificate authority than the kubeconfig, whose hash nodes verify: use a kubeconfig of that cluster with its present authority")
		}
		if join.IsLinkLocal(cluster.Server) {
			return lacking("ConfigMap kube-public/cluster-info names %s, which is link-local and leads to another machine from every network, and nodes go on with that: an administrator of that cluster sets it to what nodes reach", cluster.Server)
		}
		if join.IsLoopback(cluster.Server) {
			t.add(levelNote, trialTopic, "ConfigMap kube-public/cluster-info names %s, which is a node's own address when a node asks for it, and nodes go on with that: set it to what nodes reach", cluster.Server)
		}
	}
	return nil
}

// publicKeys returns the public keys of the certificates.
func publicKeys(text []byte) map[string]bool {
	out := map[string]bool{}
	for block, rest := pem.Decode(bytes.TrimSpace(text)); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			out[string(certificate.RawSubjectPublicKeyInfo)] = true
		}
	}
	return out
}

// configurationBounds are far above those of a ClusterConfiguration of kubeadm.
var configurationBounds = input.Bounds{Bytes: 64 << 10, Depth: 20, Elements: 4096}

// readKubeadmsConfiguration reads with the token what kubeadm join reads, and compares its version with the images'.
func (t *tenant) readKubeadmsConfiguration(ctx context.Context, node kubernetes.Interface) error {
	version := ""
	for _, name := range []string{"kubeadm-config", "kubelet-config"} {
		found, err := node.CoreV1().ConfigMaps(tokenNamespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return lacking("a bootstrap token may not read ConfigMap %s/%s, as kubeadm does: an administrator of that cluster runs kubeadm init phase upload-config all, which lets the group %s", tokenNamespace, name, kubeadmBootstrappers)
		case apierrors.IsNotFound(err):
			return lacking("there is no ConfigMap %s/%s, which kubeadm reads: an administrator of that cluster runs kubeadm init phase upload-config all, or join by tlsBootstrap", tokenNamespace, name)
		case err != nil:
			return err
		}
		var config struct {
			KubernetesVersion string `json:"kubernetesVersion"`
		}
		text := []byte(found.Data["ClusterConfiguration"])
		if input.CheckYAML(text, configurationBounds) == nil && yaml.Unmarshal(text, &config) == nil && config.KubernetesVersion != "" {
			version = config.KubernetesVersion
		}
	}
	t.checkKubeadmVersion(version)
	// kubeadm refuses a name that a ready Node has.
	if _, err := node.CoreV1().Nodes().Get(ctx, "ingot-trial", metav1.GetOptions{}); apierrors.IsForbidden(err) {
		return lacking("a bootstrap token may not get Nodes, as kubeadm does before it joins: an administrator of that cluster runs kubeadm init phase bootstrap-token, which lets the group %s", kubeadmBootstrappers)
	} else if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// checkKubeadmVersion compares the version in kubeadm-config with the images': kubeadm takes none that is more than one minor version below its own
// (cmd/kubeadm/app/constants, MinimumControlPlaneVersion), and an image's kubeadm is at least as new as its kubelet.
func (t *tenant) checkKubeadmVersion(version string) {
	cluster, known := fragment.Minor(strings.TrimPrefix(version, "v"))
	for i := range t.requirements.images {
		image := &t.requirements.images[i]
		if minor, ok := fragment.Minor(image.Spec.Software.Kubelet); known && ok && cluster < minor-1 {
			t.add(levelMend, "OSImage "+image.Name, "ConfigMap %s/kubeadm-config says Kubernetes %s, and the kubeadm that goes with kubelet %s takes none below 1.%d: an administrator of that cluster runs kubeadm init phase upload-config kubeadm with its present version",
				tokenNamespace, version, image.Spec.Software.Kubelet, minor-1)
		}
	}
}

// useToken asks the API server who a node with the token is.
func (t *tenant) useToken(ctx context.Context, node kubernetes.Interface, id string) error {
	var user string
	var last error
	// The API server reads the token's Secret from a cache, which may not have it yet.
	err := wait.PollUntilContextTimeout(ctx, pollInterval, t.issueTimeout/4, true, func(ctx context.Context) (bool, error) {
		review, err := node.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if last = err; apierrors.IsUnauthorized(err) {
			return false, nil
		}
		if err == nil {
			user = review.Status.UserInfo.Username
		}
		return true, err
	})
	if err != nil && last != nil {
		return last
	}
	if err == nil && user != "system:bootstrap:"+id {
		return lacking("a bootstrap token makes a node %s, and not system:bootstrap:%s: start the API server with --enable-bootstrap-token-auth", user, id)
	}
	return err
}
