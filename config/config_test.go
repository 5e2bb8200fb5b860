package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
)

// installation is what `kubectl apply -k config/default` applies, each object decoded strictly into its typed kind.
func installation(t *testing.T) []client.Object {
	t.Helper()
	return changedInstallation(t, func(text string) string { return text })
}

func decode(t *testing.T, text []byte) []client.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, metal3.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []client.Object
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := reader.Read()
		if err == io.EOF {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(regexp.MustCompile(`(?m)^(#.*|---)$`).ReplaceAll(document, nil))) == 0 {
			continue
		}
		object, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Errorf("%.200s: %v", document, err)
			continue
		}
		typed, ok := object.(client.Object)
		if !ok {
			t.Fatalf("%s is no object", kind)
		}
		objects = append(objects, typed)
	}
}

// the returns the one object of type T with that name.
func the[T client.Object](t *testing.T, objects []client.Object, prefix string) T {
	t.Helper()
	var found []T
	for _, o := range objects {
		if typed, ok := o.(T); ok && strings.HasPrefix(o.GetName(), prefix) {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T are named %s, want 1", len(found), *new(T), prefix)
	}
	return found[0]
}

func TestTheInstallationIsWhole(t *testing.T) {
	objects := installation(t)
	served := map[string]bool{}
	for _, o := range objects {
		if crd, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
			served[crd.Spec.Group+" "+crd.Spec.Names.Kind] = true
		}
		isOfCluster := strings.HasPrefix(fmt.Sprintf("%T", o), "*v1.Cluster") || strings.Contains(fmt.Sprintf("%T", o), "Validating") || strings.Contains(fmt.Sprintf("%T", o), "CustomResourceDefinition")
		if _, isNamespace := o.(*corev1.Namespace); !isNamespace && !isOfCluster && o.GetNamespace() != "ingot-system" && o.GetNamespace() != "ingot-boot" {
			t.Errorf("%T %s is in namespace %q: everything of Ingot's own is in ingot-system, and its boot service in ingot-boot", o, o.GetName(), o.GetNamespace())
		}
	}
	for _, kind := range []string{"Entitlement", "NodeQuota", "OSImage", "NodeProvider", "NodeType", "NodeTypeRevision", "NodePool", "Machine", "TenantCluster", "Rollout", "HostRecord"} {
		if !served["ingot.dev "+kind] {
			t.Errorf("no CRD of %s", kind)
		}
	}
	if !served["metal3.io BareMetalHost"] {
		t.Error("no CRD of BareMetalHost")
	}
	deployment := the[*appsv1.Deployment](t, objects, "ingot-manager")
	account := the[*corev1.ServiceAccount](t, objects, "ingot-manager")
	if got := deployment.Spec.Template.Spec.ServiceAccountName; got != account.Name {
		t.Errorf("the Deployment runs as %s, the service account is %s", got, account.Name)
	}
	the[*corev1.Namespace](t, objects, "ingot-system")
}

func TestWithoutTheComponentTheBaremetalOperatorsCRDIsLeftAlone(t *testing.T) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "crd")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range built.Resources() {
		if strings.HasSuffix(r.GetName(), "metal3.io") {
			t.Errorf("config/crd holds %s", r.GetName())
		}
	}
	files, err := filepath.Glob("crd/bases/*.yaml")
	if err != nil || built.Size() != len(files) {
		t.Errorf("config/crd lists %d of the %d files in bases (%v)", built.Size(), len(files), err)
	}
}

// configuration is the file that the Deployment's container reads.
func configuration(t *testing.T, objects []client.Object) (settings.Settings, *appsv1.Deployment) {
	t.Helper()
	deployment := the[*appsv1.Deployment](t, objects, "ingot-manager")
	configMap := the[*corev1.ConfigMap](t, objects, "ingot-manager-")
	if mounted := deployment.Spec.Template.Spec.Volumes[0].ConfigMap; mounted == nil || mounted.Name != configMap.Name {
		t.Errorf("the Deployment mounts %+v, the ConfigMap is %s", mounted, configMap.Name)
	}
	s, err := settings.Read(strings.NewReader(configMap.Data["config.yaml"]))
	if err != nil {
		t.Fatalf("config.yaml: %v", err)
	}
	return s, deployment
}

func TestTheDeploymentAgreesWithTheConfigurationThatItMounts(t *testing.T) {
	s, deployment := configuration(t, installation(t))
	if s.Namespace != deployment.Namespace || !s.LeaderElection.Enabled || *deployment.Spec.Replicas < 2 {
		t.Errorf("namespace %s, leader election %v, %d replicas in %s", s.Namespace, s.LeaderElection.Enabled, *deployment.Spec.Replicas, deployment.Namespace)
	}
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	mounts := map[string]string{}
	for _, m := range container.VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	if want := "--config=" + mounts["config"] + "/config.yaml"; !slices.Equal(container.Args, []string{want}) {
		t.Errorf("args %q, want %s", container.Args, want)
	}
	ports := map[string]int32{}
	for _, p := range container.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for name, address := range map[string]string{"health": s.Health.Address, "metrics": s.Metrics.Address, "webhook": s.Webhook.Address} {
		_, port, err := net.SplitHostPort(address)
		if err != nil || port != strconv.Itoa(int(ports[name])) {
			t.Errorf("port %s: the container says %d, the configuration %s", name, ports[name], address)
		}
	}
	for path, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "health" {
			t.Errorf("the probe of %s is %+v", path, probe)
		}
	}
	if !s.Metrics.Secure {
		t.Error("metrics are served to everybody")
	}
}

func TestTheInstallationNeedsNothingOfItsNodes(t *testing.T) {
	for _, o := range installation(t) {
		deployment, ok := o.(*appsv1.Deployment)
		if !ok {
			continue
		}
		for _, v := range deployment.Spec.Template.Spec.Volumes {
			if v.HostPath != nil {
				t.Errorf("Deployment %s mounts %s of its node", deployment.Name, v.HostPath.Path)
			}
		}
	}
}

func TestANewVersionNeedsNoThirdNode(t *testing.T) {
	embedded := changedInstallation(t, embedBoot)
	for name, objects := range map[string][]client.Object{"ingot-boot": installation(t), "ingot-manager": embedded} {
		deployment := the[*appsv1.Deployment](t, objects, name)
		// Each replica has ports of its node. With a surge the new pod of two nodes' third replica has no node, and the old ones wait for it for ever.
		if update := deployment.Spec.Strategy.RollingUpdate; update == nil || update.MaxSurge.IntValue() != 0 || update.MaxUnavailable.IntValue() != 1 {
			t.Errorf("%s: %+v", name, deployment.Spec.Strategy)
		}
	}
}

func TestTheProvisioningNetworkComponentGivesTheRightsThatItsSettingsNeed(t *testing.T) {
	files := filesys.MakeFsOnDisk()
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, here)
	if err != nil {
		t.Fatal(err)
	}
	overlay := "resources: [" + relative + "/boot]\ncomponents: [" + relative + "/provisioning]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	pod := the[*appsv1.Deployment](t, decode(t, text), "ingot-boot").Spec.Template.Spec
	capabilities := pod.Containers[0].SecurityContext.Capabilities
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet || *pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser != 0 {
		t.Errorf("%+v", pod)
	}
	if !slices.Equal(capabilities.Drop, []corev1.Capability{"ALL"}) || !slices.Equal(capabilities.Add, []corev1.Capability{"NET_ADMIN", "NET_BIND_SERVICE", "NET_RAW"}) {
		t.Errorf("%+v", capabilities)
	}
}

// changedInstallation is what `kubectl apply -k config/default` applies when its kustomization is changed.
func changedInstallation(t *testing.T, change func(string) string) []client.Object {
	t.Helper()
	return decode(t, buildChanged(t, change))
}

// built has what was built of each kustomization of config/default: building it takes half a second.
var built sync.Map

func buildChanged(t *testing.T, change func(string) string) []byte {
	t.Helper()
	text, err := os.ReadFile("default/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kustomization := change(string(text))
	if before, isBuilt := built.Load(kustomization); isBuilt {
		return before.([]byte)
	}
	out := build(t, kustomization)
	built.Store(kustomization, out)
	return out
}

// build returns what `kubectl apply -k config/default` applies with that kustomization.
func build(t *testing.T, kustomization string) []byte {
	t.Helper()
	files := filesys.MakeFsInMemory()
	if err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if path == "default/kustomization.yaml" {
			text = []byte(kustomization)
		}
		return files.WriteFile("/config/"+path, text)
	}); err != nil {
		t.Fatal(err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/config/default")
	if err != nil {
		t.Fatalf("kustomize build: %v", err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestTheImageIsNamedInOnePlace(t *testing.T) {
	// What `kustomize edit set image` writes into config/default.
	all := buildChanged(t, func(text string) string {
		return strings.Replace(text, "  newTag: v0.1.0", "  newName: registry.example.com/ingot-manager\n  newTag: v9", 1)
	})
	images := regexp.MustCompile(`(?m)^ *-? *image: (.*)$`).FindAllStringSubmatch(string(all), -1)
	if len(images) == 0 {
		t.Error("no image")
	}
	for _, i := range images {
		if i[1] != "registry.example.com/ingot-manager:v9" {
			t.Errorf("the image is %s", i[1])
		}
	}
}

// granted flattens rules to "group/resource verb", or "group/resource/name verb" where a rule is about one object.
func granted(t *testing.T, rules []rbacv1.PolicyRule) []string {
	t.Helper()
	var out []string
	for _, rule := range rules {
		for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs} {
			if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "*") }) {
				t.Errorf("a wildcard: %+v", rule)
			}
		}
		for _, g := range rule.APIGroups {
			for _, r := range rule.Resources {
				if len(rule.ResourceNames) > 0 {
					r += "/" + strings.Join(rule.ResourceNames, ";")
				}
				for _, v := range rule.Verbs {
					out = append(out, fmt.Sprintf("%s/%s %s", g, r, v))
				}
			}
		}
	}
	return out
}

// asked are the rights that the controllers' markers ask for, by the name of the role.
func asked(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../controllers/*/*.go")
	deeper, err2 := filepath.Glob("../controllers/*/*/*.go")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	files = append(files, deeper...)
	marker := regexp.MustCompile(`(?m)^//\+kubebuilder:rbac:groups=([^,]*),resources=([^,]*),(?:resourceNames=([^,]*),)?verbs=([^,\n]*)(?:,roleName=(\S+))?$`)
	out := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range marker.FindAllStringSubmatch(string(text), -1) {
			role := m[5]
			if role == "" {
				role = "ingot-manager"
			}
			for r := range strings.SplitSeq(m[2], ";") {
				if m[3] != "" {
					r += "/" + m[3]
				}
				for v := range strings.SplitSeq(m[4], ";") {
					out[role] = append(out[role], fmt.Sprintf("%s/%s %s", strings.Trim(m[1], `"`), r, v))
				}
			}
		}
	}
	return out
}

// inItsNamespace are the rights in the manager's own namespace.
func inItsNamespace(s settings.Settings) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{s.LeaderElection.Name, s.LeaderElection.Name + "-clock"}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{s.Boot.KeySecret}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{s.Webhook.CertificateSecret, s.Boot.TLS.AuthoritySecret, s.Boot.TLS.CertificateSecret}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

// bootInItsNamespace are those of a manager that serves boots.
func bootInItsNamespace() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"ingot-boot-address"}, Verbs: []string{"get", "update"}},
		// A range's ConfigMap is named by the range, so it cannot be named here.
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update"}},
	}
}

func TestTheManagerMayDoWhatItsControllersAskForAndNoMore(t *testing.T) {
	objects := installation(t)
	wanted := asked(t)
	roles := map[string]*rbacv1.ClusterRole{}
	for _, o := range objects {
		if role, ok := o.(*rbacv1.ClusterRole); ok {
			roles[role.Name] = role
		}
	}
	for name, rights := range wanted {
		role := roles[name]
		if role == nil {
			t.Errorf("no ClusterRole %s", name)
			continue
		}
		slices.Sort(rights)
		got := granted(t, role.Rules)
		slices.Sort(got)
		if want := slices.Compact(rights); !slices.Equal(got, want) {
			t.Errorf("ClusterRole %s:\ngrants %q\nwanted %q", name, got, want)
		}
	}
	s, _ := configuration(t, objects)
	own := the[*rbacv1.Role](t, objects, "ingot-manager")
	granted(t, own.Rules)
	if got, want := fmt.Sprint(own.Rules), fmt.Sprint(inItsNamespace(s)); got != want {
		t.Errorf("Role %s:\ngrants %s\nwanted %s", own.Name, got, want)
	}
}

// everywhere lists the ClusterRoles that are bound in the whole cluster.
func everywhere(objects []client.Object) []string {
	var names []string
	for _, o := range objects {
		if binding, ok := o.(*rbacv1.ClusterRoleBinding); ok {
			names = append(names, binding.RoleRef.Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestSecretsAreOpenOnlyInTheNamespacesThatAreGiven(t *testing.T) {
	objects := installation(t)
	if got := everywhere(objects); !slices.Equal(got, []string{"ingot-boot", "ingot-manager", "system:auth-delegator"}) {
		t.Errorf("bound in the whole cluster: %q", got)
	}
	for _, o := range objects {
		role, ok := o.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, right := range granted(t, role.Rules) {
			resource, verb, _ := strings.Cut(right, " ")
			// In a namespace of hosts, where the manager may read each Secret by its name, it watches which of them change.
			isWatchOfHosts := role.Name == "ingot-manager-hosts" && (verb == "list" || verb == "watch")
			if resource == "/secrets" && (role.Name == "ingot-manager" || !isWatchOfHosts && slices.Contains([]string{"list", "watch", "patch", "deletecollection"}, verb)) {
				t.Errorf("ClusterRole %s grants %s", role.Name, right)
			}
			if strings.HasSuffix(resource, "/status") && verb != "patch" || verb == "deletecollection" || verb == "escalate" || verb == "bind" || verb == "impersonate" {
				t.Errorf("ClusterRole %s grants %s", role.Name, right)
			}
		}
	}
}

func TestTheSamplesGiveTheManagerItsRightsWhereTheyNeedThem(t *testing.T) {
	var samples []client.Object
	files, err := filepath.Glob("samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, decode(t, text)...)
	}
	bound := map[string]bool{}
	for _, o := range samples {
		if binding, ok := o.(*rbacv1.RoleBinding); ok {
			subject := binding.Subjects[0]
			bound[fmt.Sprintf("%s in %s for %s/%s", binding.RoleRef.Name, binding.Namespace, subject.Namespace, subject.Name)] = true
		}
	}
	for _, o := range samples {
		var want string
		switch o := o.(type) {
		case *v1alpha1.NodeProvider:
			want = "ingot-manager-hosts in " + o.Spec.HostNamespace
		case *v1alpha1.TenantCluster:
			want = "ingot-manager-tenants in " + o.Namespace
		default:
			continue
		}
		if !bound[want+" for ingot-system/ingot-manager"] {
			t.Errorf("%T %s needs %s; the samples have %v", o, o.GetName(), want, bound)
		}
	}
}
