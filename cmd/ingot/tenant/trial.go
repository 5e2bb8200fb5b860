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
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// pollEvery is how often a trial looks again.
const pollEvery = 200 * time.Millisecond

// tokenLife is how long a trial's token lives should its deletion fail.
const tokenLife = 10 * time.Minute

// tryJoin does what a node does until it has its certificate: with a bootstrap token it asks for one, and it is approved
// and issued. The key is thrown away, and token and request are deleted.
func (t *tenant) tryJoin(ctx context.Context) {
	const topic = "trial of a join"
	id, secret, err := t.token()
	if err == nil {
		err = t.createToken(ctx, id, secret)
	}
	if err != nil {
		t.add(mend, topic, "no bootstrap token can be made in namespace %s: %v", tokenNamespace, err)
		return
	}
	// Also when the trial is broken off.
	defer t.forget(context.WithoutCancel(ctx), topic, id)
	node, err := kubernetes.NewForConfig(t.asNode(id + "." + secret))
	if err == nil {
		err = t.joinAs(ctx, node, id)
	}
	switch {
	case apierrors.IsUnauthorized(err):
		t.add(mend, topic, "the API server accepts no bootstrap tokens: start it with --enable-bootstrap-token-auth")
	case apierrors.IsForbidden(err):
		t.add(mend, topic, "a node may not ask for its certificate: bind ClusterRole %s to the group %s (--tenant-side prints it)", steps[0].role, steps[0].group)
		t.grants = append(t.grants, steps[0].binding(), steps[1].binding(), steps[2].binding())
	case errors.Is(err, errNotApproved):
		t.add(mend, topic, "%v: bind ClusterRole %s to the group %s (--tenant-side prints it), and see that kube-controller-manager runs", err, steps[1].role, steps[1].group)
		t.grants = append(t.grants, steps[1].binding(), steps[2].binding())
	case err != nil:
		t.add(mend, topic, "%v", cause(err))
	default:
		t.add(fine, topic, "a bootstrap token is accepted at %s, and a node's certificate issued", t.endpoint)
	}
}

// Errors of a trial.
var (
	errNotApproved = errors.New("the request for a node's certificate is not approved")
	errNotIssued   = errors.New("the request for a node's certificate is approved, but no certificate is issued: kube-controller-manager needs --cluster-signing-cert-file and --cluster-signing-key-file")
	errDenied      = errors.New("the request for a node's certificate is denied")
)

// token makes an id and a secret of the alphabet of bootstrap tokens.
func (t *tenant) token() (id, secret string, err error) {
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
	_, err := t.api.CoreV1().Secrets(tokenNamespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "expiration": time.Now().Add(tokenLife).UTC().Format(time.RFC3339),
			"usage-bootstrap-authentication": "true", "auth-extra-groups": ingotBootstrappers + "," + kubeadmBootstrappers,
			"description": "Ingot: trial of a join",
		},
	}, metav1.CreateOptions{})
	return err
}

// forget deletes the token. The request goes by itself within an hour where the user may not delete it.
func (t *tenant) forget(ctx context.Context, topic, id string) {
	if err := t.api.CoreV1().Secrets(tokenNamespace).Delete(ctx, "bootstrap-token-"+id, metav1.DeleteOptions{}); err != nil {
		t.add(note, topic, "the Secret %s/bootstrap-token-%s remains; its token ends in %s: %v", tokenNamespace, id, tokenLife, err)
	}
	err := t.api.CertificatesV1().CertificateSigningRequests().Delete(ctx, trialName(id), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		t.add(note, topic, "the CertificateSigningRequest %s remains: %v", trialName(id), err)
	}
}

// joinAs asks for a certificate and waits for it.
func (t *tenant) joinAs(ctx context.Context, node kubernetes.Interface, id string) error {
	request, err := t.request(id)
	if err != nil {
		return err
	}
	requests := node.CertificatesV1().CertificateSigningRequests()
	var last error
	// The API server's view of the token's Secret may be a moment old.
	err = wait.PollUntilContextTimeout(ctx, pollEvery, t.issue/4, true, func(context.Context) (bool, error) {
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
	// A look that the end of the waiting cuts short would say less than what was seen before it.
	err = wait.PollUntilContextTimeout(ctx, pollEvery, t.issue, true, func(context.Context) (bool, error) {
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

// request is what kubelet asks for.
func (t *tenant) request(id string) (*certificatesv1.CertificateSigningRequest, error) {
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
