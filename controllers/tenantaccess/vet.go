package tenantaccess

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// kubeconfigBounds are those of a kubeconfig with some certificates in it.
var kubeconfigBounds = input.Bounds{Bytes: 256 << 10, Depth: 20, Elements: 4096}

// Vet returns a client configuration for the current context of a kubeconfig. It copies only the fields that are known to be safe, so
// that other fields have no effect. The error is an *Error without a Tenant. Its message names the offending field and never quotes a
// value.
func Vet(kubeconfig []byte) (*rest.Config, error) {
	if err := input.CheckYAML(kubeconfig, kubeconfigBounds); err != nil {
		if large := (*input.Error)(nil); errors.As(err, &large) {
			return nil, invalid("it is %v", large)
		}
		return nil, invalid("it does not parse as a kubeconfig")
	}
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil {
		// The parser's message may quote the file, credentials included.
		return nil, invalid("it does not parse as a kubeconfig")
	}
	current, ok := parsed.Contexts[parsed.CurrentContext]
	if !ok || current == nil {
		return nil, invalid("current-context %q names no context", parsed.CurrentContext)
	}
	cluster, ok := parsed.Clusters[current.Cluster]
	if !ok || cluster == nil {
		return nil, invalid("context %q names the cluster %q, which is not there", parsed.CurrentContext, current.Cluster)
	}
	user, ok := parsed.AuthInfos[current.AuthInfo]
	if !ok || user == nil {
		return nil, invalid("context %q names the user %q, which is not there", parsed.CurrentContext, current.AuthInfo)
	}
	if field := unsafeField(current, cluster, user); field != "" {
		return nil, &Error{Reason: v1alpha1.ReasonKubeconfigUnsafe, Err: fmt.Errorf("%s: a tenant's kubeconfig may run no programs, read no files, use no proxy "+
			"and skip no verification: put certificates, keys or a token into it as data", field)}
	}
	if err := checkComplete(cluster, user); err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:        cluster.Server,
		BearerToken: user.Token, Username: user.Username, Password: user.Password,
		Impersonate: rest.ImpersonationConfig{UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups, Extra: user.ImpersonateUserExtra},
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData,
			CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
		},
		UserAgent: "ingot-manager",
	}, nil
}

// unsafeField returns the path of the first field that the manager must not use, and an empty string if there is none.
func unsafeField(context *clientcmdapi.Context, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) string {
	ofUser := fmt.Sprintf("users[%s].user.", context.AuthInfo)
	ofCluster := fmt.Sprintf("clusters[%s].cluster.", context.Cluster)
	for _, rule := range []struct {
		name    string
		present bool
	}{
		{ofUser + "exec", user.Exec != nil},
		{ofUser + "auth-provider", user.AuthProvider != nil},
		{ofUser + "tokenFile", user.TokenFile != ""},
		{ofUser + "client-certificate", user.ClientCertificate != ""},
		{ofUser + "client-key", user.ClientKey != ""},
		{ofCluster + "certificate-authority", cluster.CertificateAuthority != ""},
		{ofCluster + "insecure-skip-tls-verify", cluster.InsecureSkipTLSVerify},
		{ofCluster + "proxy-url", cluster.ProxyURL != ""},
	} {
		if rule.present {
			return rule.name
		}
	}
	return ""
}

// checkComplete returns an error unless the server is an https URL, its certificate authority is included (nodes pin it when they
// join), and there are credentials.
func checkComplete(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	if !isPlainHTTPS(cluster.Server) {
		return invalid("cluster.server must be a URL such as https://tenant.example.com:6443")
	}
	if !x509.NewCertPool().AppendCertsFromPEM(cluster.CertificateAuthorityData) {
		return invalid("cluster.certificate-authority-data holds no certificate: nodes that join pin the API server's authority")
	}
	if len(user.ClientCertificateData) > 0 || len(user.ClientKeyData) > 0 {
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			return invalid("user.client-certificate-data and client-key-data are no pair: %w", err)
		}
		return nil
	}
	if user.Token == "" && user.Username == "" {
		return invalid("the user has no credentials: client-certificate-data with client-key-data, or token")
	}
	return nil
}

func isPlainHTTPS(server string) bool {
	parsed, err := url.Parse(server)
	return err == nil && parsed.Scheme == "https" && parsed.Host != "" && parsed.User == nil && parsed.RawQuery == "" && parsed.Fragment == ""
}

func invalid(format string, args ...any) error {
	return &Error{Reason: v1alpha1.ReasonKubeconfigInvalid, Err: fmt.Errorf(format, args...)}
}

// withTenant returns an error of Vet with the tenant set.
func withTenant(err error, key types.NamespacedName) error {
	var typed *Error
	if errors.As(err, &typed) {
		typed.Tenant = key
		return typed
	}
	return &Error{Tenant: key, Reason: v1alpha1.ReasonKubeconfigInvalid, Err: err}
}
