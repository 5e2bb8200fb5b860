package tenant

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// pollInterval is the pause between two requests for the state of a certificate.
const pollInterval = 200 * time.Millisecond

// tokenLifetime is how long a trial's token remains valid when it cannot be deleted.
const tokenLifetime = 10 * time.Minute

// trialTopic is that of what a trial finds.
const trialTopic = "trial of a join"

// tryJoin does what a node does until it has its certificate, in the way of the join. It discards the key, and deletes the token and the request.
func (t *tenant) tryJoin(ctx context.Context) {
	const topic = trialTopic
	id, secret, err := t.newToken()
	if err == nil {
		err = t.createToken(ctx, id, secret)
	}
	if err != nil {
		what := ""
		if apierrors.IsForbidden(err) {
			what = "an administrator of that cluster applies what --tenant-side prints: "
		}
		t.add(levelMend, topic, "no bootstrap token can be made in namespace %s: %s%v", tokenNamespace, what, innermostError(err))
		return
	}
	// The token is deleted even when the trial is interrupted.
	defer t.deleteToken(context.WithoutCancel(ctx), topic, id)
	node, err := kubernetes.NewForConfig(t.nodeConfig(id + "." + secret))
	switch {
	case err != nil:
	case t.join == v1alpha1.JoinScript:
		err = t.useToken(ctx, node, id)
	case t.join.IsKubeadm():
		if err = t.discover(ctx, node, id, secret); err == nil {
			err = t.requestCertificate(ctx, node, id)
		}
	default:
		err = t.requestCertificate(ctx, node, id)
	}
	t.addTrial(err)
}

// addTrial adds what a trial found, and what mends it.
func (t *tenant) addTrial(err error) {
	const topic = trialTopic
	var lacks *discoveryError
	var unanswered *url.Error
	switch {
	case errors.As(err, &lacks):
		t.add(levelMend, topic, "%v", lacks)
	case apierrors.IsUnauthorized(err):
		t.add(levelMend, topic, "the API server accepts no bootstrap tokens: start it with --enable-bootstrap-token-auth")
	case apierrors.IsForbidden(err):
		t.add(levelMend, topic, "a node may not ask for its certificate: bind ClusterRole %s to the group %s (--tenant-side prints it)", joinRights[0].role, joinRights[0].group)
		t.grants = append(t.grants, joinRights[0].clusterRoleBinding(), joinRights[1].clusterRoleBinding(), joinRights[2].clusterRoleBinding())
	case errors.Is(err, errNotApproved):
		t.add(levelMend, topic, "%v: bind ClusterRole %s to the group %s (--tenant-side prints it), and see that kube-controller-manager runs", err, joinRights[1].role, joinRights[1].group)
		t.grants = append(t.grants, joinRights[1].clusterRoleBinding(), joinRights[2].clusterRoleBinding())
	case errors.As(err, &unanswered):
		t.add(levelMend, topic, "%s does not answer a node: %v: set --endpoint to what nodes reach", t.endpoint, unanswered.Err)
	case err != nil:
		t.add(levelMend, topic, "%v", err)
	case t.join == v1alpha1.JoinScript:
		t.add(levelOK, topic, "a bootstrap token is accepted at %s; what the script does with it only a node shows", t.endpoint)
	case t.join.IsKubeadm():
		t.add(levelOK, topic, "kubeadm's discovery is signed for a bootstrap token and has the kubeconfig's authority, its configuration may be read, and a node's certificate is issued")
	default:
		t.add(levelOK, topic, "a bootstrap token is accepted at %s, and a node's certificate issued", t.endpoint)
	}
}

// Errors of a trial.
var (
	errNotApproved = errors.New("the request for a node's certificate is not approved")
	errNotIssued   = errors.New("the request for a node's certificate is approved, but no certificate is issued: kube-controller-manager needs --cluster-signing-cert-file and --cluster-signing-key-file")
	errDenied      = errors.New("the request for a node's certificate is denied")
)

// newToken returns the id and the secret of a new bootstrap token.
func (t *tenant) newToken() (id, secret string, err error) {
	const alphabet = "abcdefghijklmnopqrstuvwxyz012345" // 32 characters: every byte is fair
	text := make([]byte, 6+16)
	if _, err := io.ReadFull(t.random, text); err != nil {
		return "", "", fmt.Errorf("make a bootstrap token: %w", err)
	}
	for i := range text {
		text[i] = alphabet[text[i]%32]
	}
	return string(text[:6]), string(text[6:]), nil
}

func trialName(id string) string { return "ingot-trial-" + id }

func (t *tenant) createToken(ctx context.Context, id, secret string) error {
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "expiration": time.Now().Add(tokenLifetime).UTC().Format(time.RFC3339),
			"usage-bootstrap-authentication": "true", "auth-extra-groups": ingotBootstrappers + "," + kubeadmBootstrappers,
			"description": "Ingot: trial of a join",
		},
	}
	if t.join.IsKubeadm() {
		token.StringData["usage-bootstrap-signing"] = "true"
	}
	_, err := t.api.CoreV1().Secrets(tokenNamespace).Create(ctx, token, metav1.CreateOptions{})
	return err
}

// deleteToken deletes the token and the request. Where the user may not delete the request, Kubernetes does so within an hour.
func (t *tenant) deleteToken(ctx context.Context, topic, id string) {
	if err := t.api.CoreV1().Secrets(tokenNamespace).Delete(ctx, "bootstrap-token-"+id, metav1.DeleteOptions{}); err != nil {
		t.add(levelNote, topic, "the Secret %s/bootstrap-token-%s remains; its token ends in %s: %v", tokenNamespace, id, tokenLifetime, err)
	}
	err := t.api.CertificatesV1().CertificateSigningRequests().Delete(ctx, trialName(id), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		t.add(levelNote, topic, "the CertificateSigningRequest %s remains: %v", trialName(id), err)
	}
}

// requestCertificate asks for a certificate and waits for it.
func (t *tenant) requestCertificate(ctx context.Context, node kubernetes.Interface, id string) error {
	request, err := t.newSigningRequest(id)
	if err != nil {
		return err
	}
	requests := node.CertificatesV1().CertificateSigningRequests()
	var last error
	// The API server reads the token's Secret from a cache, which may not have it yet.
	err = wait.PollUntilContextTimeout(ctx, pollInterval, t.issueTimeout/4, true, func(context.Context) (bool, error) {
		_, last = requests.Create(ctx, request, metav1.CreateOptions{})
		if apierrors.IsUnauthorized(last) {
			return false, nil
		}
		return true, last
	})
	if err != nil {
		return errors.Join(last, ctx.Err())
	}
	last = errNotApproved
	// A request that the time-out interrupts says less than the answer before it, so its error is not used.
	err = wait.PollUntilContextTimeout(ctx, pollInterval, t.issueTimeout, true, func(context.Context) (bool, error) {
		seen, err := requests.Get(ctx, request.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, c := range seen.Status.Conditions {
			switch c.Type {
			case certificatesv1.CertificateApproved:
				last = errNotIssued
			case certificatesv1.CertificateDenied:
				return false, fmt.Errorf("%w: %s", errDenied, c.Message)
			case certificatesv1.CertificateFailed:
				return false, fmt.Errorf("%w: %s", errNotIssued, c.Message)
			}
		}
		return len(seen.Status.Certificate) > 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return last
	}
	return err
}

// newSigningRequest returns the request that a kubelet makes.
func (t *tenant) newSigningRequest(id string) (*certificatesv1.CertificateSigningRequest, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), t.random)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(t.random, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + trialName(id), Organization: []string{nodes}},
	}, key)
	if err != nil {
		return nil, fmt.Errorf("make a request for a certificate: %w", err)
	}
	life := int32(600) // seconds; the API server gives no less
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: trialName(id)},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, ExpirationSeconds: &life,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, nil
}
