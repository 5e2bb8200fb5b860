package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	gate     = corev1.Taint{Key: "ingot.dev/unvalidated", Effect: corev1.TaintEffectNoSchedule}
	notReady = corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
)

func TestAControlPlaneThatNodesJoin(t *testing.T) {
	dir := t.TempDir()
	auditLog := filepath.Join(dir, "audit.log")
	first := startProgram(t, "--dir", dir, "--audit-log", auditLog)
	config := first.adminConfig(t)
	admin := clientFor(t, config)

	checkKubeconfig(t, first)
	listeners := first.listeners(t)
	checkLoopbackOnly(t, listeners)
	checkOneProgramPerDirectory(t, dir)

	node := joinNode(t, config, admin, "worker-1")
	checkNodeRights(t, node, "worker-1")
	checkClusterInfo(t, config)
	checkNodeLifecycle(t, node, "worker-1")
	checkDaemonSet(t, admin, "worker-1")
	checkAuditLog(t, auditLog)

	// A client that watches must not keep the control plane from stopping.
	watch, err := admin.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	first.terminate(t)
	checkNothingListens(t, listeners)

	second := startProgram(t, "--dir", dir, "--port", port(t, first.url))
	if second.url != first.url {
		t.Errorf("restarted at %s instead of %s", second.url, first.url)
	}
	if _, err := node.CoreV1().Nodes().Get(t.Context(), "worker-1", metav1.GetOptions{}); err != nil {
		t.Errorf("after the restart, the node's certificate: %v", err)
	}
	listeners = second.listeners(t)
	if err := second.stdin.Close(); err != nil { // as the kernel does when the parent dies
		t.Fatal(err)
	}
	second.waitForExit(t)
	checkNothingListens(t, listeners)
}

func checkKubeconfig(t *testing.T, p *program) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name, user := range config.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil || user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "" {
			t.Errorf("user %s of the kubeconfig refers to something outside it", name)
		}
	}
	authority, err := os.ReadFile(filepath.Join(filepath.Dir(p.kubeconfig), "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, cluster := range config.Clusters {
		if cluster.Server != p.url || !bytes.Equal(cluster.CertificateAuthorityData, authority) {
			t.Errorf("cluster %s of the kubeconfig: server %s, or not the authority of ca.crt", name, cluster.Server)
		}
	}
}

func checkLoopbackOnly(t *testing.T, listeners []string) {
	t.Helper()
	if len(listeners) != 2 {
		t.Errorf("listening on %v, want kube-apiserver and etcd", listeners)
	}
	for _, address := range listeners {
		if !strings.HasPrefix(address, "127.0.0.1:") {
			t.Errorf("listening on %s", address)
		}
	}
}

func checkNothingListens(t *testing.T, addresses []string) {
	t.Helper()
	for _, address := range addresses {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = connection.Close()
			t.Errorf("something still listens on %s", address)
		}
	}
}

func checkOneProgramPerDirectory(t *testing.T, dir string) {
	t.Helper()
	output, err := command(t.Context(), t, "ingot-controlplane", "run", "--dir", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "another control plane runs on") {
		t.Errorf("a second program on the directory: %v: %s", err, output)
	}
}

// checkNodeRights holds what the gate taint relies on: a node brings it along, and cannot take it off.
func checkNodeRights(t *testing.T, node kubernetes.Interface, name string) {
	t.Helper()
	nodes := node.CoreV1().Nodes()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{gate}}}
	if _, err := nodes.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatalf("a node creates itself with a taint: %v", err)
	}
	eventually(t, "a node takes off its taints and is refused", func() error {
		current, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !hasTaint(current, gate) {
			t.Fatalf("taints of the node: %v", current.Spec.Taints)
		}
		current.Spec.Taints = nil
		_, err = nodes.Update(t.Context(), current, metav1.UpdateOptions{})
		switch {
		case err == nil:
			t.Fatal("a node may take off its taints")
		case apierrors.IsConflict(err): // the node controller has written in between
			return err
		case !apierrors.IsForbidden(err):
			t.Fatalf("a node takes off its taints: %v", err)
		}
		return nil
	})
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-2"}}
	if _, err := nodes.Create(t.Context(), other, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a node creates another node: %v", err)
	}
}

// checkNodeLifecycle reports a ready node with room for pods, as kubelet does.
func checkNodeLifecycle(t *testing.T, node kubernetes.Interface, name string) {
	t.Helper()
	status := fmt.Sprintf(`{"status":{"allocatable":{"pods":"10"},"capacity":{"pods":"10"},
		"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	nodes := node.CoreV1().Nodes()
	if _, err := nodes.Patch(t.Context(), name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatalf("a node reports its status: %v", err)
	}
	eventually(t, "the node is no longer tainted as not ready", func() error {
		current, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if hasTaint(current, notReady) || !hasTaint(current, gate) {
			return fmt.Errorf("taints: %v", current.Spec.Taints)
		}
		return nil
	})
}

func hasTaint(node *corev1.Node, want corev1.Taint) bool {
	for _, taint := range node.Spec.Taints {
		if taint.MatchTaint(&want) {
			return true
		}
	}
	return false
}

// checkClusterInfo reads what a joining node reads before it trusts anybody.
func checkClusterInfo(t *testing.T, config *rest.Config) {
	t.Helper()
	anonymous := clientFor(t, rest.AnonymousClientConfig(config))
	eventually(t, "cluster-info is signed for the token", func() error {
		info, err := anonymous.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if info.Data["jws-kubeconfig-"+tokenID] == "" {
			return errors.New("no signature")
		}
		return nil
	})
}

func checkAuditLog(t *testing.T, file string) {
	t.Helper()
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"username":"system:node:worker-1"`, `"ingot.dev/unvalidated"`, `"username":"system:kube-scheduler"`} {
		if !bytes.Contains(log, []byte(want)) {
			t.Errorf("the audit log lacks %s", want)
		}
	}
	if bytes.Contains(log, []byte(tokenSecret)) {
		t.Error("the audit log tells a bootstrap token")
	}
}

func port(t *testing.T, server string) string {
	t.Helper()
	parsed, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Port()
}
