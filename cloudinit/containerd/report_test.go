package containerd

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/require"
)

// TestTheNodeReportsWithKubeletsCredential has the real curl send the report to a server that speaks TLS and asks for a client's certificate.
func TestTheNodeReportsWithKubeletsCredential(t *testing.T) {
	t.Parallel()
	require.Tool(t, "curl", "apt-get install curl")
	type request struct {
		line, contentType, body string
		clients                 int
	}
	requests := make(chan request, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- request{r.Method + " " + r.URL.Path, r.Header.Get("Content-Type"), string(body), len(r.TLS.PeerCertificates)}
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	// The server's own pair serves as its authority and as kubelet's credential.
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	var certificate, credential bytes.Buffer
	for _, der := range pair.Certificate {
		if err := pem.Encode(&certificate, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			t.Fatal(err)
		}
	}
	credential.Write(certificate.Bytes())
	if err := pem.Encode(&credential, &pem.Block{Type: "PRIVATE KEY", Bytes: key}); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, whole(), sampleConfig(t))
	n.write("/var/lib/kubelet/kubeconfig", "clusters:\n- cluster:\n    server: "+server.URL+"\n  name: default\n")
	n.write("/etc/kubernetes/pki/ca.crt", certificate.String())
	n.write("/var/lib/kubelet/pki/kubelet-client-current.pem", credential.String())
	n.check()
	n.run("report")
	got := <-requests
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if got.line != "PATCH /api/v1/nodes/"+host || got.contentType != "application/merge-patch+json" || got.clients == 0 {
		t.Errorf("%+v", got)
	}
	var patch struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal([]byte(got.body), &patch); err != nil {
		t.Fatalf("%s: %v", got.body, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(boot)) + " " + v1alpha1.ContainerdOK; patch.Metadata.Annotations[v1alpha1.AnnotationContainerd] != want {
		t.Errorf("%s, want %s", got.body, want)
	}
}
