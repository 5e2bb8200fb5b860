package nvidia

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/presentation/tenantsoftware/manifest"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
)

// Node feature discovery makes labels of what GPU feature discovery finds. Names, rights, commands and settings are those of its release (deployment/base,
// cmd/nfd-master, cmd/nfd-gc).
const (
	discoveryRepository = "registry.k8s.io/nfd/node-feature-discovery"
	discoveryImage      = discoveryRepository + ":v0.18.3"
	discoveryGroup      = "nfd.k8s-sigs.io"
	discoveryMaster     = "nfd-master"
	discoveryGC         = "nfd-gc"
	// gpuDiscovery is the account of GPU feature discovery, and the name of its DaemonSets without their suffix.
	gpuDiscovery = "gpu-feature-discovery"
)

// discoveryComponent returns node feature discovery for the nodes whose labels GPU feature discovery finds. Its worker is not part of it: GPU feature
// discovery writes NodeFeature objects itself.
func (t tenant) discoveryComponent() (software.Component, error) {
	if t.hasOperatorDriver() || len(t.devicePlugin) == 0 {
		return software.Component{}, nil
	}
	out := software.Component{Name: "node-feature-discovery", About: "Node feature discovery, which makes labels of Nodes from what GPU feature discovery finds; the verdict compares these labels where they are.\n" +
		"Its master takes NodeFeature objects of " + manifest.Namespace + " alone, and sets nothing but labels. Its garbage collector removes what was found on a Node that is\n" +
		"gone, so that no other server of that name gets its labels. Leave this out where the cluster has node feature discovery already."}
	features := customResource("nodefeatures", "NodeFeature", apiextensionsv1.NamespaceScoped)
	rules := customResource("nodefeaturerules", "NodeFeatureRule", apiextensionsv1.ClusterScoped) // The master does not start without this kind.
	master, err := discoveryDeployment(t, discoveryMaster, corev1.Container{Env: []corev1.EnvVar{manifest.EnvFromField("NODE_NAME", "spec.nodeName")}}, discoveryRestrictions())
	if err != nil {
		return software.Component{}, err
	}
	collector, err := discoveryDeployment(t, discoveryGC, corev1.Container{}, nil)
	if err != nil {
		return software.Component{}, err
	}
	typed := append([]any{features, rules}, discoveryAccounts()...)
	out.Objects, err = manifest.Objects(append(typed, master, collector)...)
	return out, err
}

// discoveryRestrictions are what the master refuses. Without them: whoever may write a NodeFeature in a namespace of their own sets labels, taints and resources
// of every Node.
func discoveryRestrictions() map[string]any {
	return map[string]any{"restrictions": map[string]any{
		"disableAnnotations": true, "disableExtendedResources": true, "disableTaints": true,
		"nodeFeatureNamespaceSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: manifest.Namespace}},
	}}
}

// customResource returns a kind of node feature discovery. Its content is left to the programs that write and read it.
func customResource(plural, kind string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	anything := true
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + discoveryGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: discoveryGroup, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything},
			}}},
		},
	}
}

// discoveryAccounts returns the accounts and rights of the master, the garbage collector and GPU feature discovery.
func discoveryAccounts() []any {
	lease := manifest.Rule("coordination.k8s.io", "leases", "get", "update")
	lease.ResourceNames = []string{"nfd-master.nfd.kubernetes.io"}
	master := []rbacv1.PolicyRule{
		manifest.Rule("", "namespaces", "watch", "list"), manifest.Rule("", "nodes", "get", "patch", "update", "list"), manifest.Rule("", "nodes/status", "get", "patch", "update"),
		manifest.Rule(discoveryGroup, "nodefeatures", "get", "list", "watch"), manifest.Rule(discoveryGroup, "nodefeaturerules", "get", "list", "watch"),
		manifest.Rule("coordination.k8s.io", "leases", "create"), lease,
	}
	return []any{
		manifest.ServiceAccount(discoveryMaster), manifest.ClusterRole(discoveryMaster, master...), manifest.ClusterRoleBinding(discoveryMaster, discoveryMaster, discoveryMaster),
		manifest.ServiceAccount(discoveryGC),
		manifest.ClusterRole(discoveryGC, manifest.Rule("", "nodes", "list", "watch"), manifest.Rule(discoveryGroup, "nodefeatures", "delete", "list"), manifest.Rule("topology.node.k8s.io", "noderesourcetopologies", "delete", "list")),
		manifest.ClusterRoleBinding(discoveryGC, discoveryGC, discoveryGC),
		manifest.ServiceAccount(gpuDiscovery),
		manifest.Role(gpuDiscovery, manifest.Rule(discoveryGroup, "nodefeatures", "get", "list", "watch", "create", "update"), manifest.Rule("", "pods", "get")),
		manifest.RoleBinding(gpuDiscovery, gpuDiscovery, gpuDiscovery),
	}
}

// discoveryDeployment returns one of node feature discovery's programs, with its options. It tolerates the gate and the NodeTypes' taints: a cluster may have no
// other nodes.
func discoveryDeployment(t tenant, name string, container corev1.Container, options map[string]any) (any, error) {
	container.Name, container.Image, container.Command = name, discoveryImage, []string{name}
	if options != nil {
		text, err := json.Marshal(options)
		if err != nil {
			return nil, err
		}
		container.Args = []string{"-options=" + string(text)}
	}
	yes := true
	container.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	container.SecurityContext = manifest.Unprivileged()
	container.SecurityContext.ReadOnlyRootFilesystem, container.SecurityContext.RunAsNonRoot = &yes, &yes
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")}}, FailureThreshold: 10}
	container.ReadinessProbe, container.LivenessProbe = probe, probe
	controlPlane := []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	one, labels := int32(1), map[string]string{"name": name}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: manifest.Namespace, Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				ServiceAccountName: name, PriorityClassName: "system-cluster-critical", Containers: []corev1.Container{container},
				Tolerations: software.AddTolerations(controlPlane, tolerations(t.devicePlugin)),
			},
		}},
	}, nil
}
