package tenant

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

func TestTheRightsToApproveServingCertificatesArePrintedAndSuffice(t *testing.T) {
	namespace := server.Namespace(t)
	kubeconfig := serviceAccount(t, namespace)
	common := []string{"research", "-n", namespace, "--kubeconfig", write(t, "kubeconfig", kubeconfig)}
	_, _, stderr := ingot(common...)
	if strings.Contains(stderr, "certificatesigningrequests.certificates") {
		t.Errorf("rights are asked for that nobody needs:\n%s", stderr)
	}
	common = append(common, "--serving-certificates")
	_, objects, stderr := ingot(common...)
	says(t, stderr, "mend  rights: the user may not get, list, watch certificatesigningrequests.certificates.k8s.io", "the user may not update certificatesigningrequests/approval.certificates.k8s.io",
		"the user may not approve signers.certificates.k8s.io/kubernetes.io/kubelet-serving")
	says(t, objects, "servingCertificates: ApprovedByIngot")
	_, roles, _ := ingot(append(common, "--tenant-side")...)
	for _, o := range apply(t, roles) {
		t.Cleanup(func() { _ = server.Client.Delete(context.Background(), o) })
	}
	management.Eventually(t, "with the roles nothing is missing", func() bool { status, _, _ := ingot(common...); return status == cli.ExitOK })
	registry := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- registry.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	key := types.NamespacedName{Namespace: namespace, Name: "research"}
	registry.WatchRequests(key, true)
	if err := registry.Set(ctx, key, []byte(kubeconfig)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the manager sees the requests and may approve them", func() bool {
		access, err := registry.For(key)
		return err == nil && access.ServingRequests.Watched && len(access.ServingRequests.Denied) == 0
	})
}

func TestTheRightsToEnforceEntitlementsArePrintedAndSuffice(t *testing.T) {
	namespace := server.Namespace(t)
	kubeconfig := serviceAccount(t, namespace)
	common := []string{"research", "-n", namespace, "--kubeconfig", write(t, "kubeconfig", kubeconfig), "--entitlements"}
	_, _, stderr := ingot(common...)
	says(t, stderr, "mend  rights: the user may not get, list, create, patch, delete validatingadmissionpolicies.admissionregistration.k8s.io", "the user may not list, watch, create resourceclaims.resource.k8s.io")
	_, roles, _ := ingot(append(common, "--tenant-side")...)
	for _, o := range apply(t, roles) {
		t.Cleanup(func() { _ = server.Client.Delete(context.Background(), o) })
	}
	management.Eventually(t, "with the roles nothing is missing", func() bool { status, _, _ := ingot(common...); return status == cli.ExitOK })
}
