package tenant

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/test/management"
)

const image = `apiVersion: ingot.dev/v1alpha1
kind: OSImage
metadata: {name: debian}
spec:
  software: {kubelet: 1.37.0}
`

// tokensOf returns the bootstrap tokens that are left.
func tokensOf(t *testing.T) (left []string) {
	t.Helper()
	api, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := api.CoreV1().Secrets(tokenNamespace).List(t.Context(), metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken)})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		left = append(left, s.Name)
	}
	return left
}

func TestWhatKubeadmDoesBeforeItsJoinIsTried(t *testing.T) {
	file := write(t, "image.yaml", image)
	args := []string{"research", "-n", "research", "--kubeconfig", server.Cluster.KubeconfigPath(), "--try-join", "-f", file}
	try := func(method, want string) (stdout, stderr string) {
		t.Helper()
		management.Eventually(t, "the trial says: "+want, func() bool {
			_, stdout, stderr = ingot(append(args, "--join", method)...)
			return strings.Contains(stderr, want)
		})
		if left := tokensOf(t); len(left) > 0 {
			t.Errorf("the trial left %v", left)
		}
		return stdout, stderr
	}
	try("kubeadm", "mend  trial of a join: a bootstrap token may not read ConfigMap kube-system/kubeadm-config, as kubeadm does: an administrator of that cluster runs kubeadm init phase upload-config all")
	metadata := metav1.ObjectMeta{Namespace: tokenNamespace, Name: "kubeadm:nodes"}
	server.Create(t, &rbacv1.Role{ObjectMeta: metadata, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"kubeadm-config", "kubelet-config"}, Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{ObjectMeta: metadata, RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "Role", Name: metadata.Name}, Subjects: []rbacv1.Subject{{APIGroup: rbacGroup, Kind: "Group", Name: kubeadmBootstrappers}}})
	try("vcluster", "mend  trial of a join: there is no ConfigMap kube-system/kubeadm-config, which kubeadm reads")
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tokenNamespace, Name: "kubeadm-config"}, Data: map[string]string{"ClusterConfiguration": "kubernetesVersion: v1.35.9\n"}}
	server.Create(t, config)
	try("kubeadm", "mend  trial of a join: there is no ConfigMap kube-system/kubelet-config, which kubeadm reads: an administrator of that cluster runs kubeadm init phase upload-config all")
	server.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tokenNamespace, Name: "kubelet-config"}})
	_, stderr := try("kubeadm", "ok    trial of a join: kubeadm's discovery is signed for a bootstrap token and has the kubeconfig's authority")
	says(t, stderr, "mend  OSImage debian: ConfigMap kube-system/kubeadm-config says Kubernetes v1.35.9, and the kubeadm that goes with kubelet 1.37.0 takes none below 1.36")
	config.Data["ClusterConfiguration"] = "kubernetesVersion: v1.36.0\n"
	if err := server.Client.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := try("vcluster", "ok    trial of a join")
	if !strings.Contains(stdout, "vcluster: {}") || strings.Contains(stderr, "takes none below") {
		t.Errorf("it prints\n%s\n%s", stdout, stderr)
	}
	without(t, "kubeadm:get-nodes")
	try("kubeadm", "mend  trial of a join: a bootstrap token may not get Nodes")
}

func TestATokenIsTriedForAJoinByScript(t *testing.T) {
	const agent = "#!/bin/sh\nexec agent\n"
	args := []string{"research", "-n", "research", "--kubeconfig", server.Cluster.KubeconfigPath(), "--try-join", "--join", "script", "--endpoint", server.Cluster.Endpoint()}
	status, stdout, stderr := ingot(append(args, "--script", write(t, "agent", agent), "--include-secret")...)
	if status != cli.ExitOK {
		t.Errorf("status %d", status)
	}
	says(t, stderr, "ok    trial of a join: a bootstrap token is accepted at "+server.Cluster.Endpoint()+"; what the script does with it only a node shows")
	namespace := server.Namespace(t)
	var tenant v1alpha1.TenantCluster
	var secret corev1.Secret
	for _, o := range apply(t, strings.ReplaceAll(stdout, "namespace: research", "namespace: "+namespace)) {
		key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		switch {
		case o.GetKind() == "TenantCluster":
			if err := server.Client.Get(t.Context(), key, &tenant); err != nil {
				t.Fatal(err)
			}
		case o.GetName() == "research-join":
			if err := server.Client.Get(t.Context(), key, &secret); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := tenant.Spec.Join.Script; s == nil || s.SecretRef.Name != "research-join" || s.Endpoint != server.Cluster.Endpoint() || string(secret.Data["script"]) != agent {
		t.Errorf("join %+v, script %q", tenant.Spec.Join, secret.Data["script"])
	}
	if left := tokensOf(t); len(left) > 0 {
		t.Errorf("the trial left %v", left)
	}
	_, _, stderr = ingot(append(args, "--script", write(t, "hush", "hush\n"))...)
	if says(t, stderr, "begin it with #!/bin/sh"); strings.Contains(strings.ReplaceAll(stderr, "/hush", ""), "hush") {
		t.Errorf("it quotes the script:\n%s", stderr)
	}
	for _, wrong := range [][]string{{"--join", "script"}, {"--script", "x"}, {"--join", "hand"}} {
		if status, _, stderr := ingot(append([]string{"research", "-n", "research", "--kubeconfig", "x"}, wrong...)...); status != cli.ExitUsage {
			t.Errorf("%v: status %d: %s", wrong, status, stderr)
		}
	}
}

func TestKubeadmsDiscoveryIsVerified(t *testing.T) {
	subject := &tenant{issueTimeout: 0}
	if err := subject.open(server.Cluster.Kubeconfig(), 0); err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(string(server.Cluster.Kubeconfig()), "certificate-authority-data: ", "certificate-authority-data: AAAA")
	if err := subject.checkDiscovered(other); err == nil || !strings.Contains(err.Error(), "another certificate authority than the kubeconfig") {
		t.Errorf("another authority: %v", err)
	}
	if err := subject.checkDiscovered(string(server.Cluster.Kubeconfig())); err != nil {
		t.Error(err)
	}
	if err := subject.checkDiscovered("{"); err == nil || !strings.Contains(err.Error(), "kubeadm init phase bootstrap-token") {
		t.Errorf("no kubeconfig: %v", err)
	}
	for _, signature := range []string{"", "a..b", "a..!", "a.b"} {
		if isSigned("content", signature, "0123456789abcdef") {
			t.Errorf("%q is taken for a signature", signature)
		}
	}
}
