package join

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	kubeletfiles "github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/controllers/servingcert"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

// runApprover runs the controller of serving certificates for a TenantCluster named research, whose cluster is the server itself.
func runApprover(t *testing.T) (namespace string) {
	t.Helper()
	key := types.NamespacedName{Namespace: server.Namespace(t), Name: "research"}
	tenants := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Log: logr.Discard()})
	server.Run(t, func(mgr ctrl.Manager) error {
		if err := mgr.Add(tenants); err != nil {
			return err
		}
		r := &servingcert.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Tenants: tenants, Recorder: mgr.GetEventRecorder("servingcert"), Clock: clock.RealClock{}}
		return r.SetupWithManager(mgr)
	})
	server.Create(t, &v1alpha1.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: v1alpha1.TenantClusterSpec{
		KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}},
		ServingCertificates: v1alpha1.ServingCertificatesApprovedByIngot,
	}})
	tenants.WatchRequests(key, true)
	if err := tenants.Set(t.Context(), key, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	return key.Namespace
}

// ownAddresses are those of this machine, where the nodes are.
func ownAddresses(t *testing.T) []string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			out = append(out, n.IP.String())
		}
	}
	return out
}

// TestAKubeletServesWithTheCertificateThatIngotApproved: it serves nothing while its address is not the one that is recorded for its host.
func TestAKubeletServesWithTheCertificateThatIngotApproved(t *testing.T) {
	dir := programs(t)
	initCluster(t, dir)
	namespace := runApprover(t)
	for id, method := range map[string]v1alpha1.JoinMethod{"servea": v1alpha1.JoinTLSBootstrap, "serveb": v1alpha1.JoinKubeadm} {
		t.Run(string(method), func(t *testing.T) {
			name, port := "serving-"+id, freePort(t)
			documents, err := cloudinit.Render(cloudinit.Input{
				Machine: cloudinit.MachineInput{Name: name, UID: "4be1a5a0", Revision: "h100-77aa", Attempt: 2}, Gate: gate,
				Kubelet: cloudinit.KubeletInput{Version: "1.37.0", Members: settings(t, port)},
				Node:    cloudinit.NodeInput{Method: method, ServerTLSBootstrap: true},
				Join:    &kubeletfiles.Join{Endpoint: server.Cluster.Endpoint(), CA: server.Cluster.CA(), Token: newToken(t, id, method)},
			})
			if err != nil {
				t.Fatal(err)
			}
			startNode(t, options{Name: name, Dir: t.TempDir(), Programs: dir, UserData: documents.UserData})
			node := &corev1.Node{}
			management.Eventually(t, "the Node registers", func() bool { return server.Client.Get(t.Context(), client.ObjectKey{Name: name}, node) == nil })
			host := newHost(t, namespace, node)
			last := ""
			management.Eventually(t, "the request is left", func() bool {
				last = conditionOf(t, namespace, name)
				return strings.HasPrefix(last, v1alpha1.ReasonServingCertificateUnapproved) && strings.Contains(last, "expected the address of its host (198.51.100.9 ")
			})
			t.Log(last)
			if _, err := handshake(t, port); err == nil || !strings.Contains(err.Error(), "tls: ") {
				t.Errorf("without a certificate: %v", err)
			}
			setAddresses(t, host)
			var certificate *x509.Certificate
			management.Eventually(t, "the kubelet serves with a certificate of the cluster", func() bool {
				certificate, err = handshake(t, port)
				return err == nil
			})
			if certificate.Subject.CommonName != "system:node:"+name || len(certificate.DNSNames) != 1 || certificate.DNSNames[0] != name {
				t.Errorf("subject %s, names %v", certificate.Subject, certificate.DNSNames)
			}
			management.Eventually(t, "the Machine says so", func() bool {
				return strings.HasPrefix(conditionOf(t, namespace, name), v1alpha1.ReasonServingCertificateApproved)
			})
		})
	}
}

// newHost makes the Machine of a Node, on a host with another address than the Node's.
func newHost(t *testing.T, namespace string, node *corev1.Node) *metal3.BareMetalHost {
	t.Helper()
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: node.Name, Annotations: map[string]string{v1alpha1.AnnotationIPAddress: "198.51.100.9/24"}}}
	host.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: namespace, Name: node.Name}
	server.Create(t, host, &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: node.Name},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}},
		Status: v1alpha1.MachineStatus{
			Phase: v1alpha1.MachineValidating, NodeRef: &v1alpha1.NodeReference{Name: node.Name, UID: node.UID}, HostRef: &v1alpha1.NamespacedReference{Namespace: namespace, Name: host.Name},
		},
	})
	return host
}

// setAddresses records the Node's addresses for its host, until the test ends.
func setAddresses(t *testing.T, host *metal3.BareMetalHost) {
	t.Helper()
	before := host.DeepCopy()
	host.Annotations[v1alpha1.AnnotationNodeAddresses] = strings.Join(ownAddresses(t), ", ")
	if err := server.Client.Patch(t.Context(), host, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), host) })
}

// conditionOf returns reason and message of the Machine's condition.
func conditionOf(t *testing.T, namespace, machine string) string {
	t.Helper()
	var m v1alpha1.Machine
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: machine}, &m); err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionServingCertificateApproved); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

// handshake returns the certificate that a kubelet serves with at this machine's first address, verified by the authority of the cluster.
func handshake(t *testing.T, port int) (*x509.Certificate, error) {
	t.Helper()
	authority := x509.NewCertPool()
	authority.AppendCertsFromPEM(server.Cluster.CA())
	connection, err := tls.Dial("tcp", net.JoinHostPort(ownAddresses(t)[0], strconv.Itoa(port)), &tls.Config{RootCAs: authority})
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0], nil
}
