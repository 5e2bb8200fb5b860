package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metal3Installation is what a site with a baremetal-operator applies: config/default with config/metal3 in place of the CRDs of Metal3.
func metal3Installation(t *testing.T) []client.Object {
	t.Helper()
	return changedInstallation(t, func(text string) string {
		return strings.NewReplacer("- ../crd/metal3\n", "- ../metal3\n", "- ../boot\n", "").Replace(text)
	})
}

func TestWithABaremetalOperatorTheManagerServesNoBoots(t *testing.T) {
	objects := metal3Installation(t)
	for _, o := range objects {
		if strings.HasSuffix(o.GetName(), ".metal3.io") {
			t.Errorf("%T %s is the baremetal-operator's", o, o.GetName())
		}
	}
	s, deployment := configuration(t, objects)
	if s.Boot.TLS.Address != "0" || s.Boot.URL != "" {
		t.Errorf("boot.url is %q and boot.tls.address %q, expected none", s.Boot.URL, s.Boot.TLS.Address)
	}
	if args := deployment.Spec.Template.Spec.Containers[0].Args; len(args) != 1 {
		t.Errorf("the manager is started with %q", args)
	}
	with, _ := configuration(t, installation(t))
	if s.Webhook != with.Webhook || s.Namespace != with.Namespace {
		t.Errorf("webhook %+v in namespace %s, without the component %+v in %s", s.Webhook, s.Namespace, with.Webhook, with.Namespace)
	}
	var ports []string
	for _, p := range deployment.Spec.Template.Spec.Containers[0].Ports {
		ports = append(ports, p.Name)
		if p.HostPort != 0 {
			t.Errorf("port %s takes port %d of its node", p.Name, p.HostPort)
		}
	}
	if !slices.Equal(ports, []string{"health", "metrics", "webhook"}) {
		t.Errorf("the container has the ports %q", ports)
	}
	if image := the[*appsv1.Deployment](t, installation(t), "ingot-manager").Spec.Template.Spec.Containers[0].Image; image != deployment.Spec.Template.Spec.Containers[0].Image {
		t.Errorf("the image is %s, without the component %s", deployment.Spec.Template.Spec.Containers[0].Image, image)
	}
}

// isOfHosts reports whether only the host controller and the boot service need the right. These do nothing where a baremetal-operator serves the hosts.
func isOfHosts(right string) bool {
	for _, prefix := range []string{"metal3.io/baremetalhosts/status ", "metal3.io/baremetalhosts/finalizers ", "ingot.dev/hostrecords/status ", "/configmaps "} {
		if strings.HasPrefix(right, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"ingot.dev/hostrecords create", "ingot.dev/hostrecords patch", "metal3.io/hardwaredata create", "metal3.io/hardwaredata patch", "/secrets list", "/secrets watch",
	}, right)
}

func TestWithABaremetalOperatorTheManagerMayNotDoTheHostControllersWork(t *testing.T) {
	objects := metal3Installation(t)
	for name, rights := range asked(t) {
		slices.Sort(rights)
		want := slices.DeleteFunc(slices.Compact(rights), isOfHosts)
		got := granted(t, the[*rbacv1.ClusterRole](t, slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool { return o.GetName() != name }), name).Rules)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("ClusterRole %s of config/metal3/rbac:\ngrants %q\nwanted %q", name, got, want)
		}
	}
	s, _ := configuration(t, objects)
	want := slices.DeleteFunc(inItsNamespace(s), func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.ResourceNames, s.Boot.KeySecret)
	})
	for i, rule := range want {
		if slices.Contains(rule.ResourceNames, s.Webhook.CertificateSecret) {
			want[i].ResourceNames = []string{s.Webhook.CertificateSecret}
		}
	}
	own := the[*rbacv1.Role](t, objects, "ingot-manager")
	if got := fmt.Sprint(own.Rules); got != fmt.Sprint(want) {
		t.Errorf("Role %s of config/metal3/rbac:\ngrants %s\nwanted %v", own.Name, got, want)
	}
}

// TestWhatABaremetalOperatorHasBesideItsHostsIsOutOfReach: HostFirmwareSettings, HostFirmwareComponents, PreprovisioningImages and the rest are the site's.
func TestWhatABaremetalOperatorHasBesideItsHostsIsOutOfReach(t *testing.T) {
	seen := 0
	for _, o := range metal3Installation(t) {
		var rules []rbacv1.PolicyRule
		switch role := o.(type) {
		case *rbacv1.ClusterRole:
			rules = role.Rules
		case *rbacv1.Role:
			rules = role.Rules
		}
		for _, rule := range rules {
			if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.APIGroups, "metal3.io") {
				seen++
				if left := slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return r == "baremetalhosts" || r == "hardwaredata" }); len(left) > 0 {
					t.Errorf("%T %s has %q on %q of metal3.io", o, o.GetName(), rule.Verbs, left)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no role has a right on metal3.io")
	}
}
