package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// identityName is the name under which the node's certificate is stored on its disk.
	identityName = "kubelet-client.json"
	// clientTimeout is the limit for a TLS handshake.
	clientTimeout = 30 * time.Second
)

// Identity is a node's credential for a server. It holds a private key.
type Identity struct {
	Server string `json:"server"`
	CA     []byte `json:"ca"`
	// Certificate and Key are PEM. Token is a bootstrap token that is used instead of them.
	Certificate []byte `json:"certificate,omitempty"`
	Key         []byte `json:"key,omitempty"`
	Token       string `json:"-"`
}

// String keeps secrets out of anything that is printed.
func (i Identity) String() string { return "identity at " + i.Server }

// GoString keeps secrets out of %#v.
func (i Identity) GoString() string { return i.String() }

// errNoLink is the answer of a network that is not there.
var errNoLink = errors.New("no route to host")

// link is a transport that fails while the machine has no link.
type link struct {
	next    http.RoundTripper
	hasLink func() bool
}

// RoundTrip implements http.RoundTripper.
func (l link) RoundTrip(request *http.Request) (*http.Response, error) {
	if l.hasLink() {
		return l.next.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close()
	}
	return nil, errNoLink
}

// client makes a client with connections of its own, which done closes. token, if set, returns a bearer token that is used
// instead of the identity's own credential.
func (i Identity) client(token func(context.Context) (string, error), hasLink func() bool) (client kubernetes.Interface, done func(), err error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(i.CA) {
		return nil, nil, errors.New("the cluster's CA is no PEM certificate")
	}
	trust := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if i.Token == "" && token == nil {
		pair, err := tls.X509KeyPair(i.Certificate, i.Key)
		if err != nil {
			return nil, nil, fmt.Errorf("the node's certificate: %w", err)
		}
		trust.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true, IdleConnTimeout: 2 * time.Minute, TLSHandshakeTimeout: clientTimeout}
	config := &rest.Config{
		Host: i.Server, BearerToken: i.Token, Transport: transport, QPS: -1, UserAgent: "kubelet (rack)",
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json"},
	}
	if token != nil {
		config.BearerToken, config.UserAgent = "", "pod (rack)"
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bearerTransport{next: next, token: token} })
	}
	if hasLink != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return link{next, hasLink} })
	}
	if client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, nil, err
	}
	return client, transport.CloseIdleConnections, nil
}

// ensureIdentity returns the identity on the disk, or requests a new one with the bootstrap token.
func (k *Kubelet) ensureIdentity(ctx context.Context) (Identity, error) {
	var stored Identity
	text, err := k.options.Storage.Load(identityName)
	if err == nil && text != nil {
		err = json.Unmarshal(text, &stored)
	}
	if err != nil {
		k.log.Warn("the certificate on the disk cannot be read", "error", err)
	}
	if k.isValid(stored) {
		return stored, nil
	}
	var who Identity
	// kubelet ends when the token is refused, and systemd starts it again.
	err = k.retry(ctx, "joining with the bootstrap token", time.Second, 10*time.Second, func() (err error) {
		who, err = k.bootstrap(ctx)
		return err
	})
	if err != nil {
		return Identity{}, err
	}
	if text, err = json.Marshal(who); err == nil {
		err = k.options.Storage.Save(identityName, text)
	}
	if err != nil {
		k.log.Error("the certificate is lost with the next boot", "error", err)
	}
	return who, nil
}

// isValid reports whether the identity has a certificate that has not expired.
func (k *Kubelet) isValid(who Identity) bool {
	block, _ := pem.Decode(who.Certificate)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	return err == nil && k.options.Clock.Now().Before(certificate.NotAfter)
}

// bootstrap requests a certificate with the token of the bootstrap kubeconfig.
func (k *Kubelet) bootstrap(ctx context.Context) (Identity, error) {
	text, err := k.options.ReadFile(k.settings.bootstrapFile)
	if err != nil {
		return Identity{}, fmt.Errorf("the bootstrap kubeconfig: %w", err)
	}
	token, err := readBootstrap(text)
	if err != nil {
		return Identity{}, err
	}
	return RequestIdentity(ctx, token, k.settings.name)
}

// readBootstrap reads server, CA and token of a kubeconfig. Its errors do not quote the content.
func readBootstrap(text []byte) (Identity, error) {
	config, err := clientcmd.Load(text)
	if err != nil {
		return Identity{}, errors.New("the bootstrap kubeconfig cannot be read")
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
		return Identity{}, errors.New("the bootstrap kubeconfig has no current context with a cluster and a user")
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if user.Token == "" {
		return Identity{}, errors.New("the bootstrap kubeconfig has no token")
	}
	return Identity{Server: cluster.Server, CA: cluster.CertificateAuthorityData, Token: user.Token}, nil
}

// RequestIdentity requests the client certificate of the node with a bootstrap token, and waits until it is signed.
func RequestIdentity(ctx context.Context, bootstrap Identity, node string) (Identity, error) {
	client, done, err := bootstrap.client(nil, nil)
	if err != nil {
		return Identity{}, err
	}
	defer done()
	key, request, err := certificateRequest(node)
	if err != nil {
		return Identity{}, err
	}
	created, err := client.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return Identity{}, fmt.Errorf("requesting a certificate: %w", err)
	}
	certificate, err := awaitCertificate(ctx, client, created)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Server: bootstrap.Server, CA: bootstrap.CA, Certificate: certificate, Key: key}, nil
}

func certificateRequest(node string) (key, request []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the node's key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("making the node's key: %w", err)
	}
	subject := pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, private)
	if err != nil {
		return nil, nil, fmt.Errorf("making the certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}), nil
}

// awaitCertificate waits until the request is signed and returns the certificate.
func awaitCertificate(ctx context.Context, client kubernetes.Interface, request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute) // as kubelet's bootstrap has it
	defer cancel()
	watcher, err := client.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", request.Name).String(), ResourceVersion: request.ResourceVersion,
	})
	if err != nil {
		return nil, fmt.Errorf("watching the certificate request: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		current, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			break
		}
		for _, condition := range current.Status.Conditions {
			if condition.Status == corev1.ConditionTrue && condition.Type != certificatesv1.CertificateApproved {
				return nil, fmt.Errorf("the certificate request is %s: %s", condition.Type, condition.Message)
			}
		}
		if len(current.Status.Certificate) > 0 {
			return current.Status.Certificate, nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, errors.New("the watch of the certificate request ended")
}
