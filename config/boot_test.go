package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/ingot-dev/ingot/api/v1alpha1"
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

func TestTheBootServiceAgreesWithItsConfigurationAndTheManagers(t *testing.T) {
	objects := installation(t)
	s, err := settings.Read(strings.NewReader(the[*corev1.ConfigMap](t, objects, "ingot-boot-config").Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ValidateBoot(); err != nil {
		t.Error(err)
	}
	manager, _ := configuration(t, objects)
	if s.KeyNamespace() != manager.Namespace || s.Boot.KeySecret != manager.Boot.KeySecret {
		t.Errorf("it reads the boot key %s/%s, the manager makes %s/%s", s.KeyNamespace(), s.Boot.KeySecret, manager.Namespace, manager.Boot.KeySecret)
	}
	if s.Boot.TLS != manager.Boot.TLS || s.Boot.URL != manager.Boot.URL {
		t.Errorf("it is at %s with HTTPS %+v, for the manager at %s with %+v", s.Boot.URL, s.Boot.TLS, manager.Boot.URL, manager.Boot.TLS)
	}
	if want := settings.Default().Boot.Files; s.Boot.Files != want || manager.Boot.Files != want {
		t.Errorf("boot.files is %s, the image has the files in %s", s.Boot.Files, want)
	}
	deployment := the[*appsv1.Deployment](t, objects, "ingot-boot")
	if deployment.Namespace != s.Namespace || s.Namespace == manager.Namespace {
		t.Errorf("it runs in namespace %s and has %s as its own; the manager's is %s, whose ConfigMaps it must not change", deployment.Namespace, s.Namespace, manager.Namespace)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	if want := []string{"--config=/etc/ingot/config.yaml", "--only=boot"}; !slices.Equal(container.Args, want) {
		t.Errorf("args %q, want %q", container.Args, want)
	}
	if other := the[*appsv1.Deployment](t, objects, "ingot-manager").Spec.Template.Spec.Containers[0].Image; container.Image != other {
		t.Errorf("image %s, the manager has %s", container.Image, other)
	}
	for _, p := range container.Ports {
		if address := map[string]string{"boot": s.Boot.Address, "boot-tls": s.Boot.TLS.Address, "health": s.Health.Address}[p.Name]; !strings.HasSuffix(address, ":"+strconv.Itoa(int(p.ContainerPort))) {
			t.Errorf("port %s: the container says %d, the configuration %s", p.Name, p.ContainerPort, address)
		}
	}
	text, err := Files.ReadFile("samples/00-namespaces.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range s.Boot.HostNamespaces {
		isBound := slices.ContainsFunc(decode(t, text), func(o client.Object) bool {
			b, ok := o.(*rbacv1.RoleBinding)
			return ok && b.Namespace == namespace && b.RoleRef.Name == "ingot-boot-hosts"
		})
		if !isBound {
			t.Errorf("config.yaml names host namespace %s, and the samples give no rights there", namespace)
		}
	}
}

// TestTheBootServiceMayChangeTheAttemptAlone compares the policy with the fields of the status: a new one is the manager's too.
func TestTheBootServiceMayChangeTheAttemptAlone(t *testing.T) {
	var policy admissionv1.ValidatingAdmissionPolicy
	text, err := Files.ReadFile("policy/boot_service.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policy = *the[*admissionv1.ValidatingAdmissionPolicy](t, decode(t, text), "ingot-boot-service")
	status := reflect.TypeFor[v1alpha1.HostRecordStatus]()
	for i := range status.NumField() {
		name, _, _ := strings.Cut(status.Field(i).Tag.Get("json"), ",")
		isKept := strings.Contains(policy.Spec.Validations[0].Expression, "object.?status.?"+name+" == oldObject.?status.?"+name)
		if isKept != (name != "attempt") {
			t.Errorf("status.%s: whether the boot service must leave it as it is: %v", name, isKept)
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
