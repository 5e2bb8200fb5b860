package servingcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
	"github.com/ingot-dev/ingot/test/tenantcalls"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// rig is a tenant with its Machines. The tenant's cluster is the management cluster itself.
type rig struct {
	namespace string
	tenants   *tenantaccess.Registry
	calls     *tenantcalls.Recorder
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{namespace: server.Namespace(t), calls: &tenantcalls.Recorder{}}
	server.Create(t, &v1alpha1.TenantCluster{ObjectMeta: r.meta("research"), Spec: v1alpha1.TenantClusterSpec{
		KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}},
		ServingCertificates: v1alpha1.ServingCertificatesApprovedByIngot,
	}})
	return r
}

// start runs the controller with a kubeconfig of the tenant.
func (r *rig) start(t *testing.T, kubeconfig []byte) {
	t.Helper()
	r.tenants = tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Log: logr.Discard(), WrapTransport: r.calls.Wrap})
	server.Run(t, func(mgr ctrl.Manager) error {
		c := &Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Tenants: r.tenants, Recorder: mgr.GetEventRecorder(name), Clock: clock.RealClock{}}
		if err := mgr.Add(r.tenants); err != nil {
			return err
		}
		return c.SetupWithManager(mgr)
	})
	key := types.NamespacedName{Namespace: r.namespace, Name: "research"}
	r.tenants.WatchRequests(key, true)
	if err := r.tenants.Set(t.Context(), key, kubeconfig); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.namespace, Name: name}
}

// newMachine creates a Machine with a Node, on a host with annotations. Its name is unique in the cluster, as that of its Node.
func (r *rig) newMachine(t *testing.T, short string, annotations map[string]string) string {
	t.Helper()
	name := r.namespace + "-" + short
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	server.Create(t, node)
	host := &metal3.BareMetalHost{ObjectMeta: r.meta("host-" + short)}
	host.Annotations = annotations
	host.Spec.BootMACAddress = "52:54:00:aa:bb:0" + short[:1]
	host.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: r.namespace, Name: name}
	server.Create(t, host, &v1alpha1.Machine{
		ObjectMeta: r.meta(name),
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}},
		Status: v1alpha1.MachineStatus{
			Phase: v1alpha1.MachineReady, NodeRef: &v1alpha1.NodeReference{Name: name, UID: node.UID},
			HostRef: &v1alpha1.NamespacedReference{Namespace: r.namespace, Name: "host-" + short},
		},
	})
	return name
}

// request creates a request as the kubelet of a node does.
func (r *rig) request(t *testing.T, node string, addresses ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, DNSNames: []string{node}}
	for _, a := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(a))
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(server.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
	kubelet, err := client.New(config, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeletServingSignerName,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
	}}
	if err := kubelet.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	return request.Name
}

func stored(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	request := &certificatesv1.CertificateSigningRequest{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: name}, request); err != nil {
		t.Fatal(err)
	}
	return request
}

// condition returns the Machine's condition; nil: it has none.
func (r *rig) condition(t *testing.T, machine string) *metav1.Condition {
	t.Helper()
	var m v1alpha1.Machine
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: machine}, &m); err != nil {
		t.Fatal(err)
	}
	return meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionServingCertificateApproved)
}

func (r *rig) awaitCondition(t *testing.T, machine, reason, says string) {
	t.Helper()
	var last *metav1.Condition
	defer func() {
		if t.Failed() {
			t.Logf("last: %+v", last)
		}
	}()
	management.Eventually(t, machine+" says "+reason, func() bool {
		last = r.condition(t, machine)
		return last != nil && last.Reason == reason && strings.Contains(last.Message, says)
	})
}

// awaitCertificate waits until the cluster has signed the request, and checks the certificate.
func awaitCertificate(t *testing.T, request, address string) {
	t.Helper()
	var text []byte
	management.Eventually(t, "the certificate is issued", func() bool { text = stored(t, request).Status.Certificate; return len(text) > 0 })
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	authority := x509.NewCertPool()
	authority.AppendCertsFromPEM(server.Cluster.CA())
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: authority, DNSName: address}); err != nil {
		t.Error(err)
	}
}

func TestTheClusterSignsWhatIsApproved(t *testing.T) {
	r := newRig(t)
	first := r.newMachine(t, "1", map[string]string{v1alpha1.AnnotationIPAddress: "10.20.4.17/22"})
	second := r.newMachine(t, "2", map[string]string{"metal3.vcluster.com/ip-address": "10.20.4.18/22"})
	// The third has no address but that of the network data that it was installed with.
	third := r.newMachine(t, "3", nil)
	var m v1alpha1.Machine
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: third}, &m); err != nil {
		t.Fatal(err)
	}
	claim := &corev1.Secret{ObjectMeta: r.meta("host-3-claim"), Data: map[string][]byte{v1alpha1.KeyNetworkData: []byte(
		`{"links": [{"id": "a", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:03"}], "networks": [{"id": "n", "link": "a", "type": "ipv4", "ip_address": "10.20.4.19", "netmask": "255.255.252.0"}]}`)}}
	claim.Labels = map[string]string{v1alpha1.LabelMachine: string(m.ClaimUID())}
	server.Create(t, claim)
	// The requests are there before the manager.
	stranger := r.request(t, r.namespace+"-nobody", "10.20.4.17")
	early := r.request(t, first, "10.20.4.17")
	r.start(t, server.Cluster.Kubeconfig())
	awaitCertificate(t, early, "10.20.4.17")
	r.awaitCondition(t, first, v1alpha1.ReasonServingCertificateApproved, early)
	awaitCertificate(t, r.request(t, third, "10.20.4.19"), "10.20.4.19")

	foreign := r.request(t, second, "10.20.4.17")
	r.awaitCondition(t, second, v1alpha1.ReasonServingCertificateUnapproved, "expected the address of its host (10.20.4.18 of the annotation ingot.dev/ip-address), seen 10.20.4.17")
	annotate(t, r.meta("host-2"), "10.20.4.17")
	r.awaitCondition(t, second, v1alpha1.ReasonServingCertificateUnapproved, "recorded for BareMetalHost "+r.namespace+"/host-1 as well")
	if c := stored(t, foreign).Status.Conditions; len(c) > 0 {
		t.Errorf("%s: %+v", foreign, c)
	}
	// An API server tells only the second of a creation, and the next request would be no newer.
	if err := server.Client.Delete(t.Context(), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: foreign}}); err != nil {
		t.Fatal(err)
	}
	further := r.request(t, second, "10.20.4.18", "10.30.0.2")
	r.awaitCondition(t, second, v1alpha1.ReasonServingCertificateUnapproved, "seen 10.30.0.2")
	annotate(t, r.meta("host-2"), "10.30.0.2, fd00::2")
	awaitCertificate(t, further, "10.30.0.2")
	r.awaitCondition(t, second, v1alpha1.ReasonServingCertificateApproved, further)
	if c := stored(t, stranger).Status.Conditions; len(c) > 0 {
		t.Errorf("%s: %+v", stranger, c)
	}
	r.calls.Check(t)
	r.optOut(t)
	management.Eventually(t, "the condition is gone", func() bool { return r.condition(t, first) == nil && r.condition(t, second) == nil })
}

// TestMissingRightsBreakNothingElse: the user of the kubeconfig gets its rights one after the other.
func TestMissingRightsBreakNothingElse(t *testing.T) {
	r := newRig(t)
	machine := r.newMachine(t, "1", map[string]string{v1alpha1.AnnotationIPAddress: "10.20.5.17/22"})
	kubeconfig, subject := server.LimitedKubeconfig(t)
	request := r.request(t, machine, "10.20.5.17")
	r.start(t, kubeconfig)
	key := types.NamespacedName{Namespace: r.namespace, Name: "research"}
	denied := func() string {
		access, err := r.tenants.For(key)
		if err != nil {
			return err.Error()
		}
		return strings.Join(access.ServingRequests.Denied, ", ")
	}
	management.Eventually(t, "the tenant is used, and every right that is missing is named", func() bool {
		return denied() == "get certificatesigningrequests, list certificatesigningrequests, watch certificatesigningrequests, update certificatesigningrequests/approval, approve signers/kubernetes.io/kubelet-serving"
	})
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "watcher"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"get", "list", "watch"}},
	}}
	server.Create(t, role, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "watcher"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "watcher"}, Subjects: []rbacv1.Subject{subject}})
	// The rights are asked for again after a minute, or when the field is set anew.
	r.askAgain(t, key)
	r.awaitCondition(t, machine, v1alpha1.ReasonServingCertificateForbidden, request+" names what it may, and the tenant's API server does not let Ingot approve it: ")
	if got := denied(); got != "update certificatesigningrequests/approval, approve signers/kubernetes.io/kubelet-serving" {
		t.Errorf("denied are %s", got)
	}
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests/approval"}, Verbs: []string{"update"}},
		rbacv1.PolicyRule{APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"signers"}, ResourceNames: []string{certificatesv1.KubeletServingSignerName}, Verbs: []string{"approve"}})
	if err := server.Client.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	r.askAgain(t, key)
	awaitCertificate(t, request, "10.20.5.17")
	r.awaitCondition(t, machine, v1alpha1.ReasonServingCertificateApproved, request)
}

// askAgain makes the registry ask for the rights now.
func (r *rig) askAgain(t *testing.T, key types.NamespacedName) {
	t.Helper()
	watched := func() bool {
		access, err := r.tenants.For(key)
		return err == nil && (access.ServingRequests.Watched || len(access.ServingRequests.Denied) > 0)
	}
	r.tenants.WatchRequests(key, false)
	management.Eventually(t, "nothing is watched", func() bool { return !watched() })
	r.tenants.WatchRequests(key, true)
	management.Eventually(t, "the rights are known", watched)
}

// TestTheAgentsAddressCountsWhereTheHostUsesDHCP: and a Node that is not the Machine's has no address.
func TestTheAgentsAddressCountsWhereTheHostUsesDHCP(t *testing.T) {
	r := newRig(t)
	machine := r.newMachine(t, "1", nil)
	var m v1alpha1.Machine
	key := client.ObjectKey{Namespace: r.namespace, Name: machine}
	if err := server.Client.Get(t.Context(), key, &m); err != nil {
		t.Fatal(err)
	}
	server.Create(t, newRecord(r.meta("host-1"), &m, "10.20.6.17"))
	setNode := func(uid types.UID) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"nodeRef":{"uid":"`+string(uid)+`"}}}`))
		if err := server.Client.Status().Patch(t.Context(), m.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
	}
	setNode("the-node-before")
	early := r.request(t, machine, "10.20.6.17")
	r.start(t, server.Cluster.Kubeconfig())
	tenant := types.NamespacedName{Namespace: r.namespace, Name: "research"}
	management.Eventually(t, "the requests are watched", func() bool { access, err := r.tenants.For(tenant); return err == nil && access.ServingRequests.Watched })
	other := r.newMachine(t, "2", map[string]string{v1alpha1.AnnotationIPAddress: "10.20.6.18"})
	awaitCertificate(t, r.request(t, other, "10.20.6.18"), "10.20.6.18") // The controller has had its time.
	if c := stored(t, early).Status.Conditions; len(c) > 0 || r.condition(t, machine) != nil {
		t.Errorf("of a Node that is not the Machine's: %+v", c)
	}
	setNode(m.Status.NodeRef.UID)
	awaitCertificate(t, early, "10.20.6.17")

	third := r.newMachine(t, "3", map[string]string{v1alpha1.AnnotationNodeAddresses: "10.20.6.17"})
	r.request(t, third, "10.20.6.17")
	r.awaitCondition(t, third, v1alpha1.ReasonServingCertificateUnapproved, "recorded for BareMetalHost "+r.namespace+"/host-1 as well")
}

// TestRecordsOfAnotherClaimCountForNothing: a host, network data and an agent's address that belong to another Machine, or to this one's attempt before.
func TestRecordsOfAnotherClaimCountForNothing(t *testing.T) {
	r := newRig(t)
	given := r.newMachine(t, "1", map[string]string{v1alpha1.AnnotationIPAddress: "10.20.7.17"})
	host := &metal3.BareMetalHost{ObjectMeta: r.meta("host-1")}
	if err := server.Client.Patch(t.Context(), host, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"consumerRef":{"name":"another"}}}`))); err != nil {
		t.Fatal(err)
	}
	addressed := r.newMachine(t, "2", nil)
	claim := &corev1.Secret{ObjectMeta: r.meta("host-2-claim"), Data: map[string][]byte{v1alpha1.KeyNetworkData: []byte(
		`{"links": [{"id": "a", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:02"}], "networks": [{"id": "n", "link": "a", "type": "ipv4", "ip_address": "10.20.7.17", "netmask": "255.255.252.0"}]}`)}}
	claim.Labels = map[string]string{v1alpha1.LabelMachine: "another"}
	server.Create(t, claim)
	installed := r.newMachine(t, "3", nil)
	var m v1alpha1.Machine
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: installed}, &m); err != nil {
		t.Fatal(err)
	}
	record := newRecord(r.meta("host-3"), &m, "10.20.7.17")
	record.Status.Installed.Attempt--
	server.Create(t, record)
	r.start(t, server.Cluster.Kubeconfig())
	for _, machine := range []string{given, addressed, installed} {
		r.request(t, machine, "10.20.7.17")
		r.awaitCondition(t, machine, v1alpha1.ReasonServingCertificateUnapproved, "expected the address of its host (none is known), seen 10.20.7.17")
	}
}

// TestAMachineWithoutARunningNodeHasNoRequests: while its server is installed anew, what has the node's credentials is not that server.
func TestAMachineWithoutARunningNodeHasNoRequests(t *testing.T) {
	r := newRig(t)
	machine := r.newMachine(t, "1", map[string]string{v1alpha1.AnnotationIPAddress: "10.20.8.17"})
	other := r.newMachine(t, "2", map[string]string{v1alpha1.AnnotationIPAddress: "10.20.8.18"})
	setPhase := func(phase v1alpha1.MachinePhase) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"`+string(phase)+`"}}`))
		if err := server.Client.Status().Patch(t.Context(), &v1alpha1.Machine{ObjectMeta: r.meta(machine)}, patch); err != nil {
			t.Fatal(err)
		}
	}
	setPhase(v1alpha1.MachineProvisioning)
	early := r.request(t, machine, "10.20.8.17")
	r.start(t, server.Cluster.Kubeconfig())
	awaitCertificate(t, r.request(t, other, "10.20.8.18"), "10.20.8.18") // The controller has had its time.
	if c := stored(t, early).Status.Conditions; len(c) > 0 {
		t.Errorf("%+v", c)
	}
	setPhase(v1alpha1.MachineDraining)
	awaitCertificate(t, early, "10.20.8.17")
}

// newRecord is the record of a host whose agent, at an address, has installed the Machine's node.
func newRecord(of metav1.ObjectMeta, m *v1alpha1.Machine, agent string) *v1alpha1.HostRecord {
	now := metav1.NowMicro()
	return &v1alpha1.HostRecord{ObjectMeta: of, Spec: v1alpha1.HostRecordSpec{
		Machine: &v1alpha1.MachineReference{Namespace: m.Namespace, Name: m.Name, UID: m.UID}, Attempt: 3,
	}, Status: v1alpha1.HostRecordStatus{
		Wanted: &v1alpha1.WantedAttempt{Number: 7, Operation: "Install", MachineUID: m.UID, MachineAttempt: 3, Since: now, Deadline: now,
			Image: &v1alpha1.ExactImage{URL: "https://images.example.com/a.raw", Checksum: "sha256:0", Format: "raw"}},
		Attempt:   &v1alpha1.HostAttempt{Number: 7, State: "Succeeded", Agent: &v1alpha1.HostAgent{KeyDigest: "00", Address: agent, RegisteredAt: now, HeardAt: now}},
		Installed: &v1alpha1.HostInstalled{MachineUID: m.UID, Attempt: 3, Checksum: "sha256:0", At: now},
	}}
}

// annotate sets the further addresses of a host.
func annotate(t *testing.T, of metav1.ObjectMeta, addresses string) {
	t.Helper()
	host := &metal3.BareMetalHost{ObjectMeta: of}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationNodeAddresses+`":"`+addresses+`"}}}`))
	if err := server.Client.Patch(t.Context(), host, patch); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) optOut(t *testing.T) {
	t.Helper()
	tenant := &v1alpha1.TenantCluster{ObjectMeta: r.meta("research")}
	if err := server.Client.Patch(t.Context(), tenant, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"servingCertificates":null}}`))); err != nil {
		t.Fatal(err)
	}
}
