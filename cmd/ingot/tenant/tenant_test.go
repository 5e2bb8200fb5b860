package tenant

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

// server is the management cluster and the tenant's at once.
var server *management.Server

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(management.Main(m, &server))
}

func ingot(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = cli.Run(context.Background(), cli.NewGroup("ingot", "", Command()), append([]string{"tenant", "add"}, args...), &out, &err)
	return status, out.String(), err.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// apply creates what was printed, as kubectl apply does the first time.
func apply(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var applied []*unstructured.Unstructured
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := documents.Read()
		if err != nil {
			return applied
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, object); err != nil {
			t.Fatal(err)
		}
		if err := server.Client.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		applied = append(applied, object)
	}
}

func says(t *testing.T, stderr string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(stderr, want) {
			t.Errorf("it does not say %q:\n%s", want, stderr)
		}
	}
}

func TestAnAdministratorsKubeconfigIsOnboarded(t *testing.T) {
	namespace := server.Namespace(t)
	status, stdout, stderr := ingot("research", "-n", namespace, "--kubeconfig", server.Cluster.KubeconfigPath(), "--include-secret", "--try-join", "--endpoint", server.Cluster.Endpoint())
	if status != cli.ExitOK {
		t.Fatalf("status %d:\n%s", status, stderr)
	}
	says(t, stderr, "ok    API server: "+server.Cluster.Endpoint()+" answers, version v1.37", "ok    rights:", "ok    resource.k8s.io/v1: is served",
		"ok    trial of a join: a bootstrap token is accepted", "note  endpoint: ", "note  DaemonSets: none looks like GPU software")
	apply(t, stdout)
	var tenant v1alpha1.TenantCluster
	if err := server.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "research"}, &tenant); err != nil {
		t.Fatal(err)
	}
	var secret corev1.Secret
	if err := server.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: tenant.Spec.KubeconfigSecretRef.Name}, &secret); err != nil {
		t.Fatal(err)
	}
	if config, err := tenantaccess.Vet(secret.Data["kubeconfig"]); err != nil || config.Host != server.Cluster.Endpoint() {
		t.Errorf("the Secret's kubeconfig: %v", err)
	}
	if j := tenant.Spec.Join.TLSBootstrap; j == nil || j.Endpoint != server.Cluster.Endpoint() {
		t.Errorf("join %+v", tenant.Spec.Join)
	}
	var left corev1.SecretList
	if err := server.Client.List(t.Context(), &left, client.InNamespace(tokenNamespace)); err != nil {
		t.Fatal(err)
	}
	for i := range left.Items {
		if left.Items[i].Type == corev1.SecretTypeBootstrapToken {
			t.Errorf("the trial left %s", left.Items[i].Name)
		}
	}
	if strings.Contains(stderr, string(secret.Data["kubeconfig"][:64])) {
		t.Error("the kubeconfig is told")
	}
}

// serviceAccount makes one without rights and returns its kubeconfig.
func serviceAccount(t *testing.T, namespace string) string {
	t.Helper()
	server.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ingot"}})
	api, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := api.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "ingot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"contexts": []any{map[string]any{"name": "a", "context": map[string]any{"cluster": "a", "user": "a"}}},
		"clusters": []any{map[string]any{"name": "a", "cluster": map[string]any{"server": server.Cluster.Endpoint(), "certificate-authority-data": server.Cluster.CA()}}},
		"users": []any{map[string]any{"name": "a", "user": map[string]any{"token": token.Status.Token}},
			map[string]any{"name": "b", "user": map[string]any{"token": "another-clusters"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(kubeconfig)
}

func TestTheRolesThatAreMissingArePrintedAndSuffice(t *testing.T) {
	namespace := server.Namespace(t)
	kubeconfig := serviceAccount(t, namespace)
	path := write(t, "kubeconfig", kubeconfig)
	status, _, stderr := ingot("research", "-n", namespace, "--kubeconfig", path)
	if status != cli.ExitFailed {
		t.Fatalf("status %d: %s", status, stderr)
	}
	says(t, stderr, "mend  rights: the user may not get, list, watch, patch, delete nodes", "secrets in namespace kube-system, to give a joining node its bootstrap token",
		"resourceslices.resource.k8s.io", "--tenant-side prints the roles for system:serviceaccount:"+namespace+":ingot", "note  join: ", "to be mended before")

	_, roles, _ := ingot("research", "-n", namespace, "--kubeconfig", path, "--tenant-side")
	for _, o := range apply(t, roles) {
		t.Cleanup(func() { _ = server.Client.Delete(context.Background(), o) })
	}
	management.Eventually(t, "with the roles nothing is missing", func() bool {
		status, _, stderr = ingot("research", "-n", namespace, "--kubeconfig", path, "--try-join")
		return status == cli.ExitOK
	})
	says(t, stderr, "ok    rights:", "ok    trial of a join:")

	// The manager itself gets by with them.
	_, secret, _ := ingot("research", "-n", namespace, "--kubeconfig", path, "--include-secret")
	if strings.Contains(secret, "another-clusters") || strings.Contains(secret, "YW5vdGhlci1jbHVzdGVycw") {
		t.Error("another cluster's credentials are in the Secret")
	}
	registry := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- registry.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	key := types.NamespacedName{Namespace: namespace, Name: "research"}
	if err := registry.Set(ctx, key, []byte(kubeconfig)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the manager can use the tenant", func() bool { _, err := registry.For(key); return err == nil })
}

func TestAKubeconfigThatTheManagerWouldRefuseIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unsafe":      {strings.Replace(string(server.Cluster.Kubeconfig()), "user:\n    client-certificate-data:", "user:\n    tokenFile: /etc/passwd\n    client-certificate-data:", 1), "mend  kubeconfig: KubeconfigUnsafe: "},
		"no YAML":     {"{", "mend  kubeconfig: KubeconfigInvalid: "},
		"nobody home": {strings.Replace(string(server.Cluster.Kubeconfig()), server.Cluster.Endpoint(), "https://127.0.0.1:1", 1), "mend  API server: https://127.0.0.1:1 does not answer"},
	} {
		status, stdout, stderr := ingot("research", "-n", "research", "--kubeconfig", write(t, "kubeconfig", c.text))
		if status != cli.ExitFailed || (stdout != "") != (name == "nobody home") {
			t.Errorf("%s: status %d, %q", name, status, stdout)
		}
		says(t, stderr, c.want)
	}
}

func TestVersionsAndDaemonSetsAreComparedWithWhatTheTenantWillUse(t *testing.T) {
	namespace := server.Namespace(t)
	set := func(name, image string, volumes ...corev1.Volume) *appsv1.DaemonSet {
		labels := map[string]string{"app": name}
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Volumes: volumes, Containers: []corev1.Container{{Name: "c", Image: image}}}}}}
	}
	gated := set("tolerant", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0")
	gated.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/gate", Operator: corev1.TolerationOpExists}}
	cni := corev1.Volume{Name: "cni", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/cni/net.d"}}}
	for _, s := range []*appsv1.DaemonSet{gated, set("plugin", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"), set("network", "cilium:1", cni), set("logs", "fluent-bit:4")} {
		server.Create(t, s)
		t.Cleanup(func() { _ = server.Client.Delete(context.Background(), s) })
	}
	image := `apiVersion: ingot.dev/v1alpha1
kind: OSImage
metadata: {name: %s}
spec: {url: "https://images.example.com/a.raw", checksum: "sha256:0", format: raw, os: {id: debian, version: "13"}, software: {kubelet: %s}}
---
apiVersion: ingot.dev/v1alpha1
kind: NodeType
metadata: {name: of-%[1]s}
spec: {providerRef: {name: hall-1}, hostSelector: {matchLabels: {a: b}}, osImageRef: {name: %[1]s}, gate: {taintKey: example.com/gate}}
---
apiVersion: v1
kind: ConfigMap
`
	file := write(t, "requirements.yaml", fmt.Sprintf(image, "old", "1.33.0")+"---\n"+fmt.Sprintf(image, "fitting", "1.36.2"))
	common := []string{"research", "-n", namespace, "--kubeconfig", server.Cluster.KubeconfigPath(), "-f", file}
	status, _, stderr := ingot(common...)
	if status != cli.ExitFailed {
		t.Errorf("status %d", status)
	}
	says(t, stderr, "mend  OSImage old: the image's kubelet 1.33.0 is more than three minor versions older", "ok    OSImage fitting: kubelet 1.36.2",
		"mend  DaemonSet "+namespace+"/plugin: looks like GPU software", "mend  DaemonSet "+namespace+"/network: gives nodes their network",
		"note  DaemonSets: run on a new node only after its verdict, since they do not tolerate the gate example.com/gate: ", namespace+"/logs")
	if strings.Contains(stderr, "/tolerant") {
		t.Errorf("a DaemonSet that tolerates the gate is named:\n%s", stderr)
	}
	_, _, stderr = ingot(append(common, "--nodetype", "of-fitting")...)
	if strings.Contains(stderr, "OSImage old") {
		t.Errorf("the image of another NodeType is judged:\n%s", stderr)
	}
	if status, _, stderr = ingot(append(common, "--nodetype", "gone")...); status != cli.ExitFailed {
		t.Errorf("status %d", status)
	}
	says(t, stderr, "no NodeType gone")
}

func TestWhatTheCommandLineGetsWrongIsUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"research"}, {"Research", "-n", "a", "--kubeconfig", "b"}, {"research", "-n", "A", "--kubeconfig", "b"},
		{"research", "-n", "a", "--kubeconfig", "b", "--endpoint", "http://a"}, {"research", "-n", "a", "--kubeconfig", "b", "--nodetype", "c"},
		{"research", "-n", "a", "--kubeconfig", "b", "--timeout", "0s"},
	} {
		if status, stdout, stderr := ingot(args...); status != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, "usage: ingot tenant add NAME") {
			t.Errorf("%v: status %d, %q, %q", args, status, stdout, stderr)
		}
	}
}
