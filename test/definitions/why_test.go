package definitions_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/fleet"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
	"github.com/ingot-dev/ingot/controllers/host/attemptlog"
	"github.com/ingot-dev/ingot/test/management"
)

// testWhy: ingot why reads with the rights of whoever calls it. An administrator gets the reason for each host, a tenant what it may not read.
func testWhy(t *testing.T, cluster *rest.Config, admin client.Client) {
	ctx := t.Context()
	m := inTeam(machine("why-", "why"))
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "why-metal"}},
		&v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: "why"}, Spec: v1alpha1.NodeProviderSpec{
			HostNamespace: "why-metal", Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "10.20.0.2"}},
		}},
		&v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: "why"}, Spec: v1alpha1.NodeTypeSpec{
			ProviderRef: v1alpha1.LocalReference{Name: "why"}, OSImageRef: v1alpha1.LocalReference{Name: "debian-13"},
			HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"rack": "1"}},
		}},
		m,
	} {
		if err := admin.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	for name, ref := range map[string]*corev1.ObjectReference{"broken": nil, "taken": {Kind: "Machine", Namespace: "rival", Name: "training-1", UID: "u"}} {
		host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "why-metal", Name: name, Labels: map[string]string{"rack": "1"}}}
		host.Spec.ConsumerRef = ref
		if err := admin.Create(ctx, host); err != nil {
			t.Fatal(err)
		}
		host.Status.ErrorType, host.Status.ErrorMessage, host.Status.OperationalStatus = metal3.PowerManagementError, "BMCUnreachable: https://10.66.6.6/redfish/v1", metal3.OperationalStatusError
		if err := admin.Status().Update(ctx, host); err != nil {
			t.Fatal(err)
		}
	}
	texts := []string{"why-metal/taken is claimed by Machine rival/training-1", "why-metal/broken is in error: BMCUnreachable: https://10.66.6.6/redfish/v1"}
	for user, mayRead := range map[string]bool{"": true, "editor": false} {
		answer := why(t, cluster, user, m)
		for _, text := range texts {
			if strings.Contains(answer, text) != mayRead {
				t.Errorf("%q is told, %t expected: %q in\n%s", user, mayRead, text, answer)
			}
		}
		if strings.Contains(answer, "not read") == mayRead || !strings.Contains(answer, m.Name) {
			t.Errorf("%q is told\n%s", user, answer)
		}
		users := ask(t, cluster, user, fleet.UsersCommand(), "nodetype", "why")
		if strings.Contains(users, m.Namespace+"/"+m.Name) != mayRead || strings.Contains(users, "you may not list") == mayRead {
			t.Errorf("%q is told of the users\n%s", user, users)
		}
	}
}

// testWhyLog: the log of an agent is for those who run the hosts, and is found by the Machine and by the host.
func testWhyLog(t *testing.T, cluster *rest.Config, admin, manager client.Client) {
	ctx := t.Context()
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "why-log-metal", Name: "gpu-7"}}
	m := inTeam(machine("why-log-", "why"))
	record := &v1alpha1.HostRecord{ObjectMeta: host.ObjectMeta}
	rights := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: host.Namespace, Name: "ingot-manager-hosts"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ingot-manager-hosts"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ingot-system", Name: "ingot-manager"}},
	}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "why-log-metal"}}, rights, host, record, m} {
		if err := admin.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: host.Namespace, Name: host.Name}
	if err := admin.Status().Update(ctx, m); err != nil {
		t.Fatal(err)
	}
	if got := askInVain(t, cluster, "", fleet.WhyCommand(), "--log", "gpu-7"); !strings.Contains(got, "no log of host why-log-metal/gpu-7") {
		t.Errorf("without a log: %s", got)
	}
	// The manager has the rights that it needs, and no more than them.
	store := &attemptlog.Store{Client: manager, APIReader: manager}
	for _, log := range []agentlogs.Log{{Attempt: 2, End: 9}, {Attempt: 3, Boot: 2, End: 99, Text: "one\ntwo\n"}} {
		log.Namespace, log.Name, log.At = host.Namespace, host.Name, time.Now()
		management.Eventually(t, "the manager may write", func() bool { return !apierrors.IsForbidden(store.SaveLog(ctx, log)) })
		if err := store.SaveLog(ctx, log); err != nil {
			t.Fatal(err)
		}
	}
	if err := manager.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(host.Namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("the manager lists ConfigMaps: %v", err)
	}
	for _, args := range [][]string{{"gpu-7"}, {"why-log-metal/gpu-7"}, {"-n", "why-log-metal", "gpu-7"}, {m.Namespace + "/" + m.Name}} {
		got := ask(t, cluster, "", fleet.WhyCommand(), append(args, "--log")...)
		if !strings.HasSuffix(got, "\none\ntwo\n") || !strings.Contains(got, "why-log-metal/gpu-7, attempt 3, boot 2") || !strings.Contains(got, "8 of 99 bytes") {
			t.Errorf("%v: %s", args, got)
		}
	}
	if got := ask(t, cluster, "", fleet.WhyCommand(), "--log", "gpu-7", "-o", "json"); !strings.Contains(got, `"text": "one\ntwo\n"`) {
		t.Errorf("as JSON: %s", got)
	}
	if got := askInVain(t, cluster, "editor", fleet.WhyCommand(), "--log", "-n", m.Namespace, m.Name); !strings.Contains(got, "for those who run the hosts") {
		t.Errorf("a tenant is told: %s", got)
	}
}

// testWhyElsewhere: a host leads to the Machine that has it or names another consumer, and where Ironic installs, the log is said to be there.
func testWhyElsewhere(t *testing.T, cluster *rest.Config, admin client.Client) {
	ctx := t.Context()
	providers := map[string]v1alpha1.NodeProviderSpec{
		"Ironic keeps the log of its ramdisk": {HostNamespace: "why-else-metal3", Metal3: &v1alpha1.Metal3Provider{}},
		"openstack baremetal node show --instance $(kubectl get bmh -n why-else-ironic why-else-ironic-1 -o jsonpath={.metadata.uid})": {
			HostNamespace: "why-else-ironic", Ironic: &v1alpha1.IronicProvider{Endpoint: "https://ironic.example.com", HardwareType: "redfish", DeployInterface: "direct"},
		},
	}
	for log, spec := range providers {
		name := spec.HostNamespace + "-1"
		m := inTeam(machine(name+"-m-", "why-else"))
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: spec.HostNamespace}}, &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: spec.HostNamespace}, Spec: spec}, m,
		} {
			if err := admin.Create(ctx, o); err != nil {
				t.Fatal(err)
			}
		}
		for host, ref := range map[string]*corev1.ObjectReference{
			name:                      {APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: m.Namespace, Name: m.Name, UID: m.UID},
			spec.HostNamespace + "-2": {APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "Metal3Machine", Namespace: "capi", Name: "worker-1"},
		} {
			b := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: spec.HostNamespace, Name: host}}
			b.Spec.ConsumerRef = ref
			if err := admin.Create(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
		m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: spec.HostNamespace, Name: name}
		if err := admin.Status().Update(ctx, m); err != nil {
			t.Fatal(err)
		}
		if got := askInVain(t, cluster, "", fleet.WhyCommand(), "--log", name); !strings.Contains(got, log) {
			t.Errorf("the log of %s: %s", name, got)
		}
		if got := ask(t, cluster, "", fleet.WhyCommand(), name); !strings.HasPrefix(got, m.Namespace+"/"+m.Name+" is ") {
			t.Errorf("host %s: %s", name, got)
		}
		if got := ask(t, cluster, "", fleet.WhyCommand(), spec.HostNamespace+"-2"); !strings.Contains(got, "Metal3Machine capi/worker-1 has it") {
			t.Errorf("a host of another consumer: %s", got)
		}
	}
}

// askInVain runs a command that fails, and returns what it says.
func askInVain(t *testing.T, cluster *rest.Config, user string, command *cobra.Command, args ...string) string {
	t.Helper()
	status, out, problems := runAs(t, cluster, user, command, args...)
	if status == 0 {
		t.Fatalf("ingot %s as %q succeeds: %s", command.Name(), user, out)
	}
	return problems
}

// why runs ingot why as a user.
func why(t *testing.T, cluster *rest.Config, user string, m *v1alpha1.Machine) string {
	t.Helper()
	return ask(t, cluster, user, fleet.WhyCommand(), "-n", m.Namespace, m.Name)
}

// ask runs a command as a user; "" is the administrator.
func ask(t *testing.T, cluster *rest.Config, user string, command *cobra.Command, args ...string) string {
	t.Helper()
	status, out, problems := runAs(t, cluster, user, command, args...)
	if status != 0 {
		t.Fatalf("ingot %s as %q: status %d: %s", command.Name(), user, status, problems)
	}
	return out
}

// runAs runs a command as a user and returns its status and what it writes.
func runAs(t *testing.T, cluster *rest.Config, user string, command *cobra.Command, args ...string) (status int, out, problems string) {
	t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: cluster.Host, CertificateAuthorityData: cluster.CAData}
	kubeconfig.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cluster.CertData, ClientKeyData: cluster.KeyData, Token: cluster.BearerToken, Impersonate: user}
	kubeconfig.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	kubeconfig.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		t.Fatal(err)
	}
	var printed, complained bytes.Buffer
	status = cli.Run(t.Context(), command, append(args, "--kubeconfig", file), &printed, &complained)
	return status, printed.String(), complained.String()
}
