package tenantaccess

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

var tenantKey = types.NamespacedName{Namespace: "research", Name: "research"}

// configOf writes a kubeconfig by hand, as a tenant does. cluster and user are further lines of those entries.
func configOf(server string, ca []byte, cluster, user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters:
- name: c
  cluster:
    server: %s
    certificate-authority-data: %s
    %s
users:
- name: u
  user:
    %s
`, server, base64.StdEncoding.EncodeToString(ca), cluster, user)
}

func newTLSServer(t *testing.T, handler http.Handler) (*httptest.Server, []byte) {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	return s, pemOf(s)
}

func TestUnsafeAndInvalidKubeconfigsAreRefusedByTheNameOfTheField(t *testing.T) {
	s, ca := newTLSServer(t, http.NotFoundHandler())
	const secret = "s3cr3t-t0ken"
	token := "token: " + secret
	for _, c := range []struct {
		name, reason, names string
		kubeconfig          []byte
	}{
		{"a program", v1alpha1.ReasonKubeconfigUnsafe, "users[u].user.exec", configOf(s.URL, ca, "", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}")},
		{"an auth provider", v1alpha1.ReasonKubeconfigUnsafe, "users[u].user.auth-provider", configOf(s.URL, ca, "", "auth-provider: {name: gcp}")},
		{"a token file", v1alpha1.ReasonKubeconfigUnsafe, "users[u].user.tokenFile", configOf(s.URL, ca, "", "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token")},
		{"a certificate file", v1alpha1.ReasonKubeconfigUnsafe, "users[u].user.client-certificate", configOf(s.URL, ca, "", "client-certificate: /etc/kubernetes/pki/ca.crt")},
		{"a key file", v1alpha1.ReasonKubeconfigUnsafe, "users[u].user.client-key", configOf(s.URL, ca, "", "client-key: /etc/kubernetes/pki/ca.key")},
		{"an authority file", v1alpha1.ReasonKubeconfigUnsafe, "clusters[c].cluster.certificate-authority", configOf(s.URL, ca, "certificate-authority: /etc/passwd", token)},
		{"no verification", v1alpha1.ReasonKubeconfigUnsafe, "clusters[c].cluster.insecure-skip-tls-verify", configOf(s.URL, ca, "insecure-skip-tls-verify: true", token)},
		{"a proxy", v1alpha1.ReasonKubeconfigUnsafe, "clusters[c].cluster.proxy-url", configOf(s.URL, ca, "proxy-url: http://169.254.169.254", token)},
		{"no encryption", v1alpha1.ReasonKubeconfigInvalid, "cluster.server", configOf("http://tenant.example.com", ca, "", token)},
		{"a server with a password", v1alpha1.ReasonKubeconfigInvalid, "cluster.server", configOf("https://a:"+secret+"@tenant.example.com", ca, "", token)},
		{"no authority", v1alpha1.ReasonKubeconfigInvalid, "certificate-authority-data", configOf(s.URL, nil, "", token)},
		{"no credentials", v1alpha1.ReasonKubeconfigInvalid, "the user has no credentials", configOf(s.URL, ca, "", "username: ''")},
		{"half a pair", v1alpha1.ReasonKubeconfigInvalid, "client-certificate-data", configOf(s.URL, ca, "", "client-key-data: "+base64.StdEncoding.EncodeToString([]byte(secret)))},
		{"no such context", v1alpha1.ReasonKubeconfigInvalid, `current-context "gone"`, []byte("kind: Config\napiVersion: v1\ncurrent-context: gone\n")},
		{"no YAML", v1alpha1.ReasonKubeconfigInvalid, "does not parse", []byte("token: " + secret + "\n\t}{")},
		{"aliases of aliases", v1alpha1.ReasonKubeconfigInvalid, "too large: expected at most 4096 elements", aliasesOfAliases()},
		{"much", v1alpha1.ReasonKubeconfigInvalid, "too large: expected at most 262144 bytes", configOf(s.URL, ca, "", "token: "+strings.Repeat("a", 300_000))},
		{"an empty file", v1alpha1.ReasonKubeconfigInvalid, "names no context", nil},
	} {
		r := New(Options{Scheme: testScheme(t)})
		err := r.Set(t.Context(), tenantKey, c.kubeconfig)
		var typed *Error
		if !errors.As(err, &typed) || typed.Reason != c.reason || typed.Tenant != tenantKey || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: error %v, want %s naming %s", c.name, err, c.reason, c.names)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error quotes a secret: %v", c.name, err)
		}
		if _, again := r.For(tenantKey); again != err {
			t.Errorf("%s: For says %v", c.name, again)
		}
	}
}

// aliasesOfAliases returns a kubeconfig of half a kilobyte that expands to a billion values.
func aliasesOfAliases() []byte {
	out := "apiVersion: v1\nkind: Config\nextensions: [&a0 [lol]]\n"
	for i := range 9 {
		out += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9)+fmt.Sprintf("*a%d", i))
	}
	return []byte(out)
}

func FuzzVetSurvivesWhateverATenantWrites(f *testing.F) {
	f.Add(configOf("https://127.0.0.1:6443", []byte("ca"), "", "token: a"))
	f.Add([]byte("contexts: [null]"))
	f.Add([]byte(`{"contexts":[{"name":"","context":null}],"clusters":[{"cluster":null}],"users":[{"user":null}]}`))
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		if config, err := Vet(kubeconfig); err == nil && (config.Insecure || config.ExecProvider != nil || config.BearerTokenFile != "" || config.Proxy != nil) {
			t.Errorf("an unsafe configuration passed: %s", kubeconfig)
		}
	})
}
