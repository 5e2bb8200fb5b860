package tenant

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/test/management"
)

// changed changes an object until the test ends. change returns false to have it deleted.
func changed[T client.Object](t *testing.T, object T, change func(T) bool) {
	t.Helper()
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	before, _ := object.DeepCopyObject().(T)
	var err error
	if change(object) {
		err = server.Client.Update(t.Context(), object)
	} else {
		err = server.Client.Delete(t.Context(), object)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A deleted object is made again, and a changed one is replaced.
		_ = server.Client.Delete(context.Background(), object)
		before.SetResourceVersion("")
		before.SetUID("")
		if err := server.Client.Create(context.Background(), before); err != nil {
			t.Error(err)
		}
	})
}

func clusterInfo() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}}
}

// TestWhatKubeadmsDiscoveryLacksIsNamed: each message says what is wrong, and who does what.
func TestWhatKubeadmsDiscoveryLacksIsNamed(t *testing.T) {
	file := server.Cluster.KubeconfigPath()
	for name, c := range map[string]struct {
		method string
		fault  func(*testing.T)
		want   string
	}{
		"no cluster-info": {"kubeadm", func(t *testing.T) {
			changed(t, clusterInfo(), func(*corev1.ConfigMap) bool { return false })
		}, "there is no ConfigMap kube-public/cluster-info, by which kubeadm finds the cluster: an administrator of that cluster runs kubeadm init phase bootstrap-token, or join by tlsBootstrap"},
		"cluster-info is not public": {"vcluster", func(t *testing.T) {
			binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "kubeadm:bootstrap-signer-clusterinfo"}}
			changed(t, binding, func(*rbacv1.RoleBinding) bool { return false })
		}, "ConfigMap kube-public/cluster-info may not be read without credentials, as kubeadm does: an administrator of that cluster runs kubeadm init phase bootstrap-token"},
		"another authority": {"kubeadm", func(t *testing.T) {
			changed(t, clusterInfo(), func(o *corev1.ConfigMap) bool {
				o.Data["kubeconfig"] = strings.Replace(o.Data["kubeconfig"], "certificate-authority-data: ", "certificate-authority-data: AAAA", 1)
				return true
			})
		}, "ConfigMap kube-public/cluster-info has another certificate authority than the kubeconfig, whose hash nodes verify: use a kubeconfig of that cluster"},
		"a link-local server": {"vcluster", func(t *testing.T) {
			changed(t, clusterInfo(), func(o *corev1.ConfigMap) bool {
				o.Data["kubeconfig"] = strings.Replace(o.Data["kubeconfig"], server.Cluster.Endpoint(), "https://169.254.1.1:6443", 1)
				return true
			})
		}, "ConfigMap kube-public/cluster-info names https://169.254.1.1:6443, which is link-local"},
	} {
		t.Run(name, func(t *testing.T) {
			c.fault(t)
			management.Eventually(t, c.want, func() bool {
				_, _, stderr := ingot("research", "-n", "research", "--kubeconfig", file, "--try-join", "--join", c.method)
				return strings.Contains(stderr, "mend  trial of a join: "+c.want)
			})
			if left := tokensOf(t); len(left) > 0 {
				t.Errorf("the trial left %v", left)
			}
		})
	}
}

func TestATrialThatCannotBeginSaysWhoMakesItPossible(t *testing.T) {
	nobody := write(t, "kubeconfig", serviceAccount(t, server.Namespace(t)))
	for _, method := range [][]string{{"--join", "tlsBootstrap"}, {"--join", "kubeadm"}, {"--join", "script", "--script", write(t, "agent", "#!/bin/sh\n")}} {
		args := append([]string{"research", "-n", "research", "--try-join"}, method...)
		_, _, stderr := ingot(append(args, "--kubeconfig", nobody)...)
		says(t, stderr, "mend  trial of a join: no bootstrap token can be made in namespace kube-system: an administrator of that cluster applies what --tenant-side prints: ")
		_, _, stderr = ingot(append(args, "--kubeconfig", server.Cluster.KubeconfigPath(), "--endpoint", "https://127.0.0.1:1")...)
		says(t, stderr, "mend  trial of a join: https://127.0.0.1:1 does not answer a node: dial tcp 127.0.0.1:1: connect: connection refused: set --endpoint to what nodes reach")
		if left := tokensOf(t); len(left) > 0 {
			t.Errorf("the trial left %v", left)
		}
	}
}

func TestALinkLocalEndpointIsRefused(t *testing.T) {
	status, _, stderr := ingot("research", "-n", "research", "--kubeconfig", "x", "--endpoint", "https://169.254.169.254:6443")
	if status != cli.ExitUsage {
		t.Errorf("status %d", status)
	}
	says(t, stderr, "--endpoint https://169.254.169.254:6443: expected what nodes reach, seen a link-local address")
	subject := &tenant{endpoint: "https://[fe80::1]:6443"}
	if subject.checkEndpoint(t.Context()); len(subject.findings) != 1 || subject.findings[0].level != levelMend || !strings.Contains(subject.findings[0].text, "set --endpoint to what nodes reach") {
		t.Errorf("of the kubeconfig: %+v", subject.findings)
	}
}
