package config

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
)

// bootInstallation is what `kubectl apply -k config/boot` applies.
func bootInstallation(t *testing.T) []client.Object {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "boot")
	if err != nil {
		t.Fatalf("kustomize build config/boot: %v", err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func TestTheBootServiceAloneAgreesWithItsConfiguration(t *testing.T) {
	objects := bootInstallation(t)
	s, err := settings.Read(strings.NewReader(the[*corev1.ConfigMap](t, objects, "ingot-boot-config").Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ValidateOnlyBoot(); err != nil {
		t.Error(err)
	}
	manager, _ := configuration(t, installation(t))
	if s.KeyNamespace() != manager.Namespace || s.Boot.KeySecret != manager.Boot.KeySecret {
		t.Errorf("it reads the boot key %s/%s, the manager makes %s/%s", s.KeyNamespace(), s.Boot.KeySecret, manager.Namespace, manager.Boot.KeySecret)
	}
	if s.Boot.TLS != manager.Boot.TLS {
		t.Errorf("its HTTPS has %+v, the manager's %+v", s.Boot.TLS, manager.Boot.TLS)
	}
	deployment := the[*appsv1.Deployment](t, objects, "ingot-boot")
	if deployment.Namespace != s.Namespace || s.Namespace == manager.Namespace {
		t.Errorf("it runs in namespace %s and has %s as its own; the manager's is %s, whose ConfigMaps it must not change", deployment.Namespace, s.Namespace, manager.Namespace)
	}
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if want := []string{"--config=/etc/ingot/config.yaml", "--only=boot"}; !slices.Equal(container.Args, want) {
		t.Errorf("args %q, want %q", container.Args, want)
	}
	if !pod.HostNetwork || !slices.Equal(container.SecurityContext.Capabilities.Add, []corev1.Capability{"NET_ADMIN", "NET_BIND_SERVICE", "NET_RAW"}) {
		t.Errorf("hostNetwork %v, capabilities %v: DHCP, TFTP and the shared address need them", pod.HostNetwork, container.SecurityContext.Capabilities.Add)
	}
	if other := the[*appsv1.Deployment](t, installation(t), "ingot-manager").Spec.Template.Spec.Containers[0].Image; container.Image != other {
		t.Errorf("image %s, the manager has %s", container.Image, other)
	}
	for _, p := range container.Ports {
		if address := map[string]string{"boot": s.Boot.Address, "boot-tls": s.Boot.TLS.Address, "health": s.Health.Address}[p.Name]; !strings.HasSuffix(address, ":"+strconv.Itoa(int(p.ContainerPort))) {
			t.Errorf("port %s: the container says %d, the configuration %s", p.Name, p.ContainerPort, address)
		}
	}
	for _, namespace := range s.Boot.HostNamespaces {
		isBound := slices.ContainsFunc(objects, func(o client.Object) bool {
			b, ok := o.(*rbacv1.RoleBinding)
			return ok && b.Namespace == namespace && b.RoleRef.Name == "ingot-boot-hosts"
		})
		if !isBound {
			t.Errorf("config.yaml names host namespace %s, and hosts.yaml gives no rights there", namespace)
		}
	}
}

func TestTheBootServiceAloneHasNoRightsEverywhereButToRead(t *testing.T) {
	objects := bootInstallation(t)
	if got := everywhere(objects); !slices.Equal(got, []string{"ingot-boot"}) {
		t.Fatalf("bound in the whole cluster: %q", got)
	}
	want := []string{"/namespaces get", "/namespaces list", "/namespaces watch", "ingot.dev/nodeproviders get", "ingot.dev/nodeproviders list", "ingot.dev/nodeproviders watch"}
	for _, o := range objects {
		if role, ok := o.(*rbacv1.ClusterRole); ok && role.Name == "ingot-boot" {
			if got := granted(t, role.Rules); !slices.Equal(got, want) {
				t.Errorf("ClusterRole %s grants %q, want %q", role.Name, got, want)
			}
		}
	}
}
