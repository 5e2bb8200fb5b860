package environment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is longer than anybody watches a demo.
const tokenSeconds = 24 * 3600

// The manager runs as this service account.
const managerNamespace, managerName = "ingot-system", "ingot-manager"

// ManagerUser is who the management cluster sees in the manager.
func (w *World) ManagerUser() string {
	return "system:serviceaccount:" + managerNamespace + ":" + managerName
}

// managerKubeconfig writes a kubeconfig of the manager's own service account: it may do what config/rbac says, and no more.
func (w *World) managerKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := w.Fleet.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("get the manager's token: %w", err)
	}
	w.Secrets = append(w.Secrets, request.Status.Token)
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: w.Management.Endpoint(), CertificateAuthorityData: w.Management.CA()}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	text, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	path := filepath.Join(w.Dir, "manager.kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	return path, nil
}
