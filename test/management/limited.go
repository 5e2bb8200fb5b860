package management

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// LimitedKubeconfig returns the kubeconfig of a service account that may read Nodes and ResourceSlices, and no Namespace, and the subject that it is.
func (s *Server) LimitedKubeconfig(t *testing.T) ([]byte, rbacv1.Subject) {
	t.Helper()
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "limited"}
	s.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: subject.Namespace, Name: subject.Name}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "limited"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceslices"}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "limited"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "limited"}, Subjects: []rbacv1.Subject{subject}})
	clients, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := clients.CoreV1().ServiceAccounts(subject.Namespace).CreateToken(t.Context(), subject.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: s.Config.Host, CertificateAuthorityData: s.Cluster.CA()}
	kubeconfig.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	kubeconfig.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	kubeconfig.CurrentContext = "x"
	text, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return text, subject
}
