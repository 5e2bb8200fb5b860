package definitions_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/fleet"
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

// why runs ingot why as a user.
func why(t *testing.T, cluster *rest.Config, user string, m *v1alpha1.Machine) string {
	t.Helper()
	return ask(t, cluster, user, fleet.WhyCommand(), "-n", m.Namespace, m.Name)
}

// ask runs a command as a user; "" is the administrator.
func ask(t *testing.T, cluster *rest.Config, user string, command *cobra.Command, args ...string) string {
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
	var out, problems bytes.Buffer
	if status := cli.Run(t.Context(), command, append(args, "--kubeconfig", file), &out, &problems); status != 0 {
		t.Fatalf("ingot %s as %q: status %d: %s", command.Name(), user, status, problems.String())
	}
	return out.String()
}
