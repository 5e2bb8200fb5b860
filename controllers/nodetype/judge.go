package nodetype

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/controllers/plan/revision"
	"github.com/ingot-dev/ingot/presentation"
)

// finding is what follows from an observation.
type finding struct {
	// claimNamespace: the host namespace is nobody's yet and must be claimed first.
	claimNamespace bool
	// obstacle keeps the NodeType from making nodes; nil: none.
	obstacle *obstacle
	// revision of what the NodeType says now; nil while there is an obstacle.
	revision *v1alpha1.NodeTypeRevision
}

// obstacle is a reason of NodeType's Ready condition.
type obstacle struct {
	reason  string
	message string
}

// judge decides, without a client.
func judge(seen observation) finding {
	for _, check := range []func(observation) *obstacle{providerServed, namespaceFree, imageReady, formatTaken} {
		if o := check(seen); o != nil {
			return finding{obstacle: o}
		}
	}
	if seen.namespace.Annotations[v1alpha1.AnnotationNodeProvider] == "" {
		return finding{claimNamespace: true}
	}
	if o := nodePossible(seen); o != nil {
		return finding{obstacle: o}
	}
	made, o := snapshot(seen)
	return finding{obstacle: o, revision: made}
}

func providerServed(seen observation) *obstacle {
	name := seen.nodeType.Spec.ProviderRef.Name
	switch {
	case seen.provider == nil:
		return &obstacle{v1alpha1.ReasonProviderNotFound, fmt.Sprintf("spec.providerRef names the NodeProvider %s, which does not exist: create it", name)}
	case seen.provider.Spec.Ironic != nil:
		return &obstacle{v1alpha1.ReasonProviderUnsupported, fmt.Sprintf("NodeProvider %s is of the kind ironic, which this version does not serve: use redfish or metal3", name)}
	case seen.namespace == nil:
		return &obstacle{v1alpha1.ReasonProviderNotFound, fmt.Sprintf("the host namespace %s of NodeProvider %s does not exist: create it", seen.provider.Spec.HostNamespace, name)}
	}
	return nil
}

// namespaceFree: two providers, or two operators, would drive the same BMCs.
func namespaceFree(seen observation) *obstacle {
	namespace, name := seen.namespace.Name, seen.provider.Name
	if owner := seen.namespace.Annotations[v1alpha1.AnnotationNodeProvider]; owner != "" && owner != name {
		return &obstacle{v1alpha1.ReasonHostNamespaceTaken, fmt.Sprintf(
			"namespace %s belongs to NodeProvider %s by its annotation %s: give NodeProvider %s a namespace of its own", namespace, owner, v1alpha1.AnnotationNodeProvider, name)}
	}
	if seen.provider.Spec.Metal3 != nil {
		return nil
	}
	for _, facts := range seen.hosts {
		if slices.Contains(facts.Host.Finalizers, metal3api.BareMetalHostFinalizer) {
			return &obstacle{v1alpha1.ReasonHostNamespaceTaken, fmt.Sprintf(
				"BareMetalHost %s/%s carries the finalizer of a baremetal-operator, which serves this namespace: use a metal3 provider, or another namespace", namespace, facts.Host.Name)}
		}
	}
	return nil
}

// denied: the manager's own rights end at the namespaces that it was given.
func denied(seen observation) *obstacle {
	namespace := seen.provider.Spec.HostNamespace
	return &obstacle{v1alpha1.ReasonHostNamespaceDenied, fmt.Sprintf(
		"Ingot may not claim the host namespace %s of NodeProvider %s: bind ClusterRole ingot-manager-hosts to Ingot's service account by a RoleBinding there, "+
			"as config/samples/00-namespaces.yaml does", namespace, seen.provider.Name)}
}

func imageReady(seen observation) *obstacle {
	if seen.image == nil {
		return &obstacle{v1alpha1.ReasonOSImageNotFound, fmt.Sprintf("spec.osImageRef names the OSImage %s, which does not exist: create it", seen.nodeType.Spec.OSImageRef.Name)}
	}
	ready := meta.FindStatusCondition(seen.image.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return &obstacle{v1alpha1.ReasonOSImageNotReady, fmt.Sprintf("OSImage %s has not been checked yet", seen.image.Name)}
	}
	if ready.Status != metav1.ConditionTrue || seen.image.Status.Checksum == "" {
		return &obstacle{v1alpha1.ReasonOSImageNotReady, fmt.Sprintf("OSImage %s: %s: %s", seen.image.Name, ready.Reason, ready.Message)}
	}
	return nil
}

// formats that each kind of provider writes.
var formats = []struct {
	kind  string
	is    func(v1alpha1.NodeProviderSpec) bool
	takes []v1alpha1.ImageFormat
}{
	{"redfish", func(p v1alpha1.NodeProviderSpec) bool { return p.Redfish != nil }, []v1alpha1.ImageFormat{v1alpha1.FormatRaw, v1alpha1.FormatRawGzip, v1alpha1.FormatRawZstd}},
	{"metal3", func(p v1alpha1.NodeProviderSpec) bool { return p.Metal3 != nil }, []v1alpha1.ImageFormat{v1alpha1.FormatRaw, v1alpha1.FormatQCOW2}},
}

func formatTaken(seen observation) *obstacle {
	format := seen.image.Spec.Format
	var kind string
	var others []string
	for _, f := range formats {
		takes := slices.Contains(f.takes, format)
		if f.is(seen.provider.Spec) {
			if takes {
				return nil
			}
			kind = f.kind
		} else if takes {
			others = append(others, f.kind)
		}
	}
	return &obstacle{v1alpha1.ReasonFormatUnsupported, fmt.Sprintf("OSImage %s has the format %s, which the %s provider %s cannot write; %s can",
		seen.image.Name, format, kind, seen.provider.Name, strings.Join(others, ", "))}
}

// nodePossible asks presentation and cloudinit, so that an impossible node is refused before a machine is touched.
func nodePossible(seen observation) *obstacle {
	plan, err := presentation.Resolve(presentation.Request{GPU: seen.nodeType.Spec.GPU, Image: seen.image.Spec, Resources: seen.nodeType.Spec.Resources})
	var refusal *presentation.Refusal
	if errors.As(err, &refusal) {
		return &obstacle{refusal.Reason, refusal.Message}
	}
	if err != nil {
		return &obstacle{v1alpha1.ReasonPresentationInvalid, err.Error()}
	}
	provider, nodeType, image := seen.provider, seen.nodeType, seen.image.Spec
	names := []string{"NodeProvider " + provider.Name, "NodeType " + nodeType.Name}
	if err := cloudinit.Check(cloudinit.Input{
		Kind: image.UserData, OS: image.OS.ID, KernelArguments: image.KernelArguments, Plan: plan, Network: provider.Spec.Network,
		Layers:     []cloudinit.Layer{{Name: names[0], Text: provider.Spec.UserData}, {Name: names[1], Text: nodeType.Spec.UserData}},
		Properties: []properties.Level{{Name: names[0], Values: provider.Spec.Properties}, {Name: names[1], Values: nodeType.Spec.Properties}},
		SSHKeys:    slices.Concat(provider.Spec.SSHKeys, nodeType.Spec.SSHKeys),
	}); err != nil {
		return &obstacle{v1alpha1.ReasonUserDataInvalid, err.Error()}
	}
	return nil
}

// snapshot makes the revision of what the NodeType says now. Where the NodeType itself says what the target or the
// stable revision says, it is that one: a changed NodeProvider alone neither rolls a fleet nor spoils a rollback.
func snapshot(seen observation) (*v1alpha1.NodeTypeRevision, *obstacle) {
	inputs := revision.Inputs{NodeType: seen.nodeType, Provider: seen.provider, Image: seen.image}
	spec, err := revision.Build(inputs)
	if err != nil {
		return nil, &obstacle{v1alpha1.ReasonOSImageNotReady, err.Error()}
	}
	digest, err := revision.Digest(spec)
	if err != nil {
		return nil, &obstacle{v1alpha1.ReasonPresentationInvalid, err.Error()}
	}
	own, err := revision.OwnDigest(inputs)
	if err != nil {
		return nil, &obstacle{v1alpha1.ReasonPresentationInvalid, err.Error()}
	}
	for _, name := range []string{seen.nodeType.Status.TargetRevision, seen.nodeType.Status.StableRevision} {
		if kept := seen.revisions[name]; kept != nil && kept.Annotations[v1alpha1.AnnotationInputs] == own {
			return kept, nil
		}
	}
	return &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{
		Name: revision.Name(seen.nodeType.Name, digest), Annotations: map[string]string{v1alpha1.AnnotationInputs: own},
	}, Spec: spec}, nil
}
