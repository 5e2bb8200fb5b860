package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	tokenID     = "abcdef"
	tokenSecret = "0123456789abcdef"
)

// joinNode does what kubelet does with a bootstrap token, and returns a client with the certificate that it gets.
func joinNode(t *testing.T, config *rest.Config, admin kubernetes.Interface, name string) kubernetes.Interface {
	t.Helper()
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + tokenID, Namespace: metav1.NamespaceSystem},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id":                       tokenID,
			"token-secret":                   tokenSecret,
			"usage-bootstrap-authentication": "true",
			"usage-bootstrap-signing":        "true",
		},
	}
	if _, err := admin.CoreV1().Secrets(token.Namespace).Create(t.Context(), token, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create the bootstrap token: %v", err)
	}
	bootstrap := rest.AnonymousClientConfig(config)
	bootstrap.BearerToken = tokenID + "." + tokenSecret

	key, request := certificateRequest(t, name)
	certificate := signedCertificate(t, clientFor(t, bootstrap), request)
	checkSubject(t, certificate, name)

	node := rest.AnonymousClientConfig(config)
	node.CertData, node.KeyData = certificate, key
	return clientFor(t, node)
}

func certificateRequest(t *testing.T, name string) (key, request []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	subject := pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
	request, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err = x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
}

// signedCertificate asks for a certificate that nobody approves by hand.
func signedCertificate(t *testing.T, bootstrap kubernetes.Interface, request []byte) []byte {
	t.Helper()
	requests := bootstrap.CertificatesV1().CertificateSigningRequests()
	created, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    request,
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("a bootstrap token requests a certificate: %v", err)
	}
	var certificate []byte
	eventually(t, "the certificate request is approved and signed", func() error {
		current, err := requests.Get(t.Context(), created.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		certificate = current.Status.Certificate
		if len(certificate) == 0 {
			return fmt.Errorf("conditions: %v", current.Status.Conditions)
		}
		return nil
	})
	return certificate
}

func checkSubject(t *testing.T, certificate []byte, name string) {
	t.Helper()
	block, _ := pem.Decode(certificate)
	if block == nil {
		t.Fatal("the certificate is not PEM encoded")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := parsed.Subject.String(), "CN=system:node:"+name+",O=system:nodes"; got != want {
		t.Errorf("subject %s, want %s", got, want)
	}
}

// checkDaemonSet needs the DaemonSet controller, the pods' service account and the scheduler.
func checkDaemonSet(t *testing.T, admin kubernetes.Interface, node string) {
	t.Helper()
	labels := map[string]string{"app": "plugin"}
	privileged := true
	daemonSet := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "plugin", Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Containers: []corev1.Container{{
						Name:            "plugin",
						Image:           "registry.example.com/plugin",
						SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
					}},
				},
			},
		},
	}
	if _, err := admin.AppsV1().DaemonSets(daemonSet.Namespace).Create(t.Context(), daemonSet, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create the daemon set: %v", err)
	}
	eventually(t, "the daemon set's pod is bound to the node", func() error {
		pods, err := admin.CoreV1().Pods(daemonSet.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=plugin"})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d pods", len(pods.Items))
		}
		if pods.Items[0].Spec.NodeName != node {
			return errors.New("not bound yet")
		}
		return nil
	})
}
