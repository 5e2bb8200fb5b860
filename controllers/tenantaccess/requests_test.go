package tenantaccess

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// newRequest creates a request for a certificate as a node.
func newRequest(t *testing.T, node, signer string, usage certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: nodeUserPrefix + node, Organization: []string{"system:nodes"}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	config := *server.Config
	config.Impersonate.UserName, config.Impersonate.Groups = nodeUserPrefix+node, []string{"system:nodes", "system:authenticated"}
	kubelet, err := client.New(&config, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-", Annotations: map[string]string{"long": strings.Repeat("x", 1000)}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}
	if err := kubelet.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), request) })
	return request
}

func TestRequestsAreWatchedWhereTheyAreWanted(t *testing.T) {
	wanted := newRequest(t, "requesting", certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth)
	newRequest(t, "requesting", certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth)
	r := newRegistry(t, Options{})
	var mu sync.Mutex
	var sent []string
	source := r.RequestSource("test", func(tenant types.NamespacedName, node string) []reconcile.Request {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, tenant.String()+" "+node)
		return nil
	})
	if err := source.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Set(t.Context(), tenantKey, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	access := usable(t, r, tenantKey)
	var list certificatesv1.CertificateSigningRequestList
	if err := access.Cache.List(t.Context(), &list); err == nil {
		t.Error("requests are read that nobody wants: all of the tenant's would be watched")
	}
	r.WatchRequests(tenantKey, true)
	watched := func() bool { access, err := r.For(tenantKey); return err == nil && access.ServingRequests.Watched }
	eventually(t, "the requests are watched", watched)
	access = usable(t, r, tenantKey)
	if err := access.Cache.List(t.Context(), &list, client.MatchingFields{UsernameField: "system:node:requesting"}); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d requests, error %v", len(list.Items), err)
	}
	got := list.Items[0]
	if got.Name != wanted.Name || got.UID != wanted.UID || !bytes.Equal(got.Spec.Request, wanted.Spec.Request) || got.Spec.Username != "system:node:requesting" || len(got.Spec.Usages) != 2 ||
		!slices.Contains(got.Spec.Groups, "system:nodes") || got.CreationTimestamp.IsZero() || got.Annotations != nil || got.ManagedFields != nil {
		t.Errorf("%+v", got)
	}
	eventually(t, "its node is sent", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(sent, tenantKey.String()+" requesting")
	})
	r.WatchRequests(tenantKey, false)
	eventually(t, "nothing is watched", func() bool { return !watched() })
	if s := usable(t, r, tenantKey).ServingRequests; s.Problem != "" || len(s.Denied) > 0 {
		t.Errorf("%+v", s)
	}
}

func TestARequestKeepsWhatIsDecidedByAndNoMore(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-1", Labels: map[string]string{"a": "b"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Username: "system:node:a", Request: []byte(long), SignerName: certificatesv1.KubeletServingSignerName, Groups: slices.Repeat([]string{long}, 100),
			Usages: slices.Repeat([]certificatesv1.KeyUsage{certificatesv1.KeyUsage(long)}, 100), Extra: map[string]certificatesv1.ExtraValue{"a": {long}},
		},
		Status: certificatesv1.CertificateSigningRequestStatus{
			Certificate: []byte(long), Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Message: long}},
		},
	}
	kept := trimRequest(request)
	if size := footprint(kept); size > 128<<10 {
		t.Errorf("%d bytes are kept", size)
	}
	if len(kept.Spec.Request) != maxServingRequest || cap(kept.Spec.Request) > 2*maxServingRequest || kept.Status.Conditions[0].Type != certificatesv1.CertificateApproved || kept.Status.Certificate != nil {
		t.Errorf("%+v", kept.Status)
	}
	request.Spec.Username = "an administrator"
	if kept := trimRequest(request); kept.Spec.Request != nil || kept.Name != "csr-1" {
		t.Errorf("of a request that is no node's %+v is kept", kept)
	}
}
