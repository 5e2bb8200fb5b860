package validation

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/gpumode"
	"github.com/ingot-dev/ingot/test/require"
)

// TestGPUsLeftInMIGModeAreSeen runs the node's own script with the credential of a kubelet, which a real API server has signed, against that server with
// NodeRestriction. The device plugin advertises eight GPUs and every label is as for whole ones: nothing else tells that one is in MIG mode.
func TestGPUsLeftInMIGModeAreSeen(t *testing.T) {
	shell, curl := require.Tool(t, "sh", "apt-get install -y dash"), require.Tool(t, "curl", "apt-get install -y curl")
	w := start(t)
	m := w.join(t, "node-r", true)
	reporter := newReporter(t, w, "node-r", shell, curl)
	m.reconcile()
	if c := m.check("report/gpu-mode"); c.Result != v1alpha1.CheckPass || c.Observed != "not reported" {
		t.Errorf("before the report: %+v", c)
	}
	reporter.modes(t, "Disabled", "Disabled", "Disabled", "Disabled", "Disabled", "Disabled", "Enabled", "Disabled")
	must(t, reporter.run("node-r"))
	m.reconcile()
	if c := m.check("report/gpu-mode"); c.Result != v1alpha1.CheckFail || c.Observed != "6 Disabled, 1 Enabled, 1 Disabled" {
		t.Errorf("with a GPU in MIG mode: %+v", c)
	}
	m.after(time.Minute)
	m.expect("with a GPU in MIG mode", true, false, v1alpha1.ReasonChecksFailed)
	reporter.modes(t, "Disabled", "Disabled", "Disabled", "Disabled", "Disabled", "Disabled", "Disabled", "Disabled")
	must(t, reporter.run("node-r"))
	m.reconcile()
	m.after(30 * time.Second)
	m.expect("mended", false, true, v1alpha1.ReasonValidated)
	other := w.join(t, "node-s", true)
	if err := reporter.run("node-s"); err == nil || len(other.node().Annotations[v1alpha1.AnnotationGPUMode]) > 0 {
		t.Errorf("a kubelet wrote the report of another Node: %v, %v", err, other.node().Annotations)
	}
}

func (m *machine) check(name string) v1alpha1.Check {
	m.t.Helper()
	for _, c := range m.get().Status.Verdict.Checks {
		if c.Name == name {
			return c
		}
	}
	m.t.Fatalf("the verdict has no check %s", name)
	return v1alpha1.Check{}
}

// reporter is the script of a node, whose files are in a directory and whose programs are a shell's.
type reporter struct {
	dir, shell string
}

func newReporter(t *testing.T, w *world, node, shell, curl string) reporter {
	t.Helper()
	r := reporter{dir: t.TempDir(), shell: shell}
	config, err := clientcmd.RESTConfigFromKubeConfig(w.kubeconfig)
	must(t, err)
	file, _ := gpumode.ReportFileAndUnit("nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader")
	r.write(t, "script", strings.NewReplacer("/etc/kubernetes", r.dir, "/var/lib/kubelet", r.dir, "/proc/sys/kernel/random", r.dir).Replace(file.Content))
	r.write(t, "boot_id", "boot-1\n")
	r.write(t, "kubeconfig", "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority: "+r.dir+"/pki/ca.crt\n    server: "+config.Host+"\n")
	r.write(t, "pki/ca.crt", string(config.CAData))
	r.write(t, "pki/kubelet-client-current.pem", string(kubeletCredential(t, kubernetes.NewForConfigOrDie(config), node)))
	r.write(t, "bin/nvidia-smi", "#!/bin/sh\ncat "+r.dir+"/modes\n")
	r.write(t, "bin/uname", "#!/bin/sh\necho \"$NODE\"\n")
	must(t, os.Symlink(curl, filepath.Join(r.dir, "bin/curl")))
	return r
}

func (r reporter) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(r.dir, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o755))
}

func (r reporter) modes(t *testing.T, modes ...string) {
	t.Helper()
	r.write(t, "modes", strings.Join(modes, "\n")+"\n")
}

// run runs the script on the node.
func (r reporter) run(node string) error {
	cmd := exec.Command(r.shell, filepath.Join(r.dir, "script"))
	cmd.Env = []string{"PATH=" + r.dir + "/bin:/usr/bin:/bin", "NODE=" + node}
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.New(string(out))
	}
	return nil
}

// kubeletCredential returns a key and a certificate of the node's kubelet, as kubelet stores them. The controllers of the cluster sign it.
func kubeletCredential(t *testing.T, c kubernetes.Interface, node string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}, key)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	csr, err := c.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}), SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"})
	_, err = c.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, node, csr, metav1.UpdateOptions{})
	must(t, err)
	for len(csr.Status.Certificate) == 0 {
		csr, err = c.CertificatesV1().CertificateSigningRequests().Get(ctx, node, metav1.GetOptions{})
		must(t, err)
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	return bytes.Join([][]byte{csr.Status.Certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})}, nil)
}
