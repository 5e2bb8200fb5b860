package nodetype

import (
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/feasibility"
	"github.com/ingot-dev/ingot/controllers/plan/rendering"
	"github.com/ingot-dev/ingot/controllers/plan/revision"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	"github.com/ingot-dev/ingot/controllers/plan/rollout"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// finding is what is decided from an observation.
type finding struct {
	// claimNamespace: the host namespace is nobody's yet and must be claimed first.
	claimNamespace bool
	// obstacle keeps the NodeType from making nodes; nil: none.
	obstacle *obstacle
	// warnings are what was accepted and is not certain.
	warnings []feasibility.Finding
	// revision of what the NodeType says now; nil while there is an obstacle.
	revision *v1alpha1.NodeTypeRevision
	// rendered is which rendering the revision has; made names what this version of Ingot makes of it, and refusal is why it makes
	// none.
	rendered      rendering.Choice
	made, refusal string
}

// obstacle is a reason of NodeType's Ready condition.
type obstacle struct {
	reason  string
	message string
}

// decide joins what controllers/plan/feasibility says of the manifests with what only the cluster knows. A revision that has a
// rendering is judged by that rendering.
func decide(obs observation, resolve presentation.Resolver) finding {
	out := revisionAndRendering(obs, resolve)
	in := feasibility.Inputs{NodeType: obs.nodeType, Image: obs.image, Provider: obs.provider, Resolve: resolve}
	if r := out.rendered.Rendering; r != nil {
		in.Pinned = &r.Spec.Plan
	}
	judgement := feasibility.Check(in)
	for _, o := range []func() *obstacle{
		func() *obstacle { return providerServed(obs, judgement) },
		func() *obstacle { return namespaceFree(obs) },
		func() *obstacle { return imageReady(obs, judgement) },
	} {
		if o := o(); o != nil {
			return finding{obstacle: o}
		}
	}
	if obs.namespace.Annotations[v1alpha1.AnnotationNodeProvider] == "" {
		return finding{claimNamespace: true}
	}
	if o := obstacleOf(judgement.Refusals); o != nil {
		return finding{obstacle: o}
	}
	if out.obstacle != nil {
		return finding{obstacle: out.obstacle, made: out.made}
	}
	out.warnings = judgement.Warnings
	return out
}

// revisionAndRendering finds the revision of what the NodeType says now, and its rendering. Without an OSImage that was checked
// there is none.
func revisionAndRendering(obs observation, resolve presentation.Resolver) finding {
	if obs.image == nil || obs.provider == nil || obs.image.Status.Checksum == "" {
		return finding{}
	}
	if s := obs.nodeType.Status; s.StableRevision != "" && s.StableRendering == "" {
		return finding{obstacle: &obstacle{v1alpha1.ReasonOlderShape, fmt.Sprintf(
			"status.stableRevision %s has no rendering: an earlier version of Ingot installed its Machines and kept none, so what they are to be judged by is not known, and nothing is done with them: delete Machines and NodeType, and make them again", s.StableRevision)}}
	}
	revised, o := currentRevision(obs)
	if o != nil {
		return finding{obstacle: o}
	}
	out := finding{revision: revised}
	facts := rendering.Facts{Revision: revised.Name, Requested: obs.nodeType.Spec.Rendering, Status: obs.nodeType.Status, Existing: obs.renderings, IsUsed: obs.isUsed}
	plan, err := resolve(spec.Request{GPU: revised.Spec.GPU, Image: obs.image.Spec})
	if err == nil {
		facts.Resolved, err = rendering.New(revised.Name, plan)
	}
	if err != nil {
		out.refusal = err.Error()
	} else {
		out.made = facts.Resolved.Name
	}
	out.rendered, err = rendering.Choose(facts)
	switch {
	case err != nil:
		return finding{obstacle: &obstacle{v1alpha1.ReasonRenderingUnreadable, err.Error()}}
	case out.rendered.LostRendering != "":
		return finding{made: out.made, obstacle: &obstacle{v1alpha1.ReasonRenderingLost, fmt.Sprintf(
			"NodeTypeRendering %s, by which the Machines are judged, does not exist, and this version of Ingot makes another one: restore it from a backup, or run the version that made it; ingot rollout refresh %s installs all Machines anew", out.rendered.LostRendering, obs.nodeType.Name)}}
	case out.rendered.Rendering == nil:
		return finding{obstacle: &obstacle{v1alpha1.ReasonPresentationInvalid, out.refusal}}
	}
	return out
}

// obstacleOf joins findings to one obstacle with the reason of the first; nil: there are none.
func obstacleOf(found []feasibility.Finding) *obstacle {
	if len(found) == 0 {
		return nil
	}
	texts := make([]string, len(found))
	for i, f := range found {
		texts[i] = f.String()
	}
	return &obstacle{found[0].Reason, strings.Join(texts, "; ")}
}

// withReason returns the findings that have the reason.
func withReason(reason string, found []feasibility.Finding) []feasibility.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f feasibility.Finding) bool { return f.Reason != reason })
}

func providerServed(obs observation, judgement feasibility.Result) *obstacle {
	if o := obstacleOf(withReason(v1alpha1.ReasonProviderNotFound, judgement.Missing)); o != nil {
		return o
	}
	if o := obstacleOf(withReason(v1alpha1.ReasonProviderUnsupported, judgement.Refusals)); o != nil {
		return o
	}
	if obs.namespace == nil {
		return &obstacle{v1alpha1.ReasonProviderNotFound, fmt.Sprintf("the host namespace %s of NodeProvider %s does not exist: create it", obs.provider.Spec.HostNamespace, obs.provider.Name)}
	}
	return nil
}

// namespaceFree returns an obstacle where the host namespace belongs to another provider or to a baremetal-operator: both would
// drive the same BMCs.
func namespaceFree(obs observation) *obstacle {
	namespace, name := obs.namespace.Name, obs.provider.Name
	if owner := obs.namespace.Annotations[v1alpha1.AnnotationNodeProvider]; owner != "" && owner != name {
		return &obstacle{v1alpha1.ReasonHostNamespaceTaken, fmt.Sprintf(
			"namespace %s belongs to NodeProvider %s by its annotation %s: give NodeProvider %s a namespace of its own", namespace, owner, v1alpha1.AnnotationNodeProvider, name)}
	}
	if obs.provider.Spec.Metal3 != nil {
		return nil
	}
	for _, facts := range obs.hosts {
		if slices.Contains(facts.Host.Finalizers, metal3.BareMetalHostFinalizer) {
			return &obstacle{v1alpha1.ReasonHostNamespaceTaken, fmt.Sprintf(
				"BareMetalHost %s/%s carries the finalizer of a baremetal-operator, which serves this namespace: use a metal3 provider, or another namespace", namespace, facts.Host.Name)}
		}
	}
	return nil
}

// namespaceDenied returns the obstacle where the manager has no permission in the host namespace.
func namespaceDenied(obs observation) *obstacle {
	namespace := obs.provider.Spec.HostNamespace
	return &obstacle{v1alpha1.ReasonHostNamespaceDenied, fmt.Sprintf(
		"Ingot may not claim the host namespace %s of NodeProvider %s: bind ClusterRole ingot-manager-hosts to Ingot's service account by a RoleBinding there, "+
			"as config/samples/00-namespaces.yaml does", namespace, obs.provider.Name)}
}

func imageReady(obs observation, judgement feasibility.Result) *obstacle {
	if o := obstacleOf(withReason(v1alpha1.ReasonOSImageNotFound, judgement.Missing)); o != nil {
		return o
	}
	ready := meta.FindStatusCondition(obs.image.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return &obstacle{v1alpha1.ReasonOSImageNotReady, fmt.Sprintf("OSImage %s has not been checked yet", obs.image.Name)}
	}
	if ready.Status != metav1.ConditionTrue || obs.image.Status.Checksum == "" {
		return &obstacle{v1alpha1.ReasonOSImageNotReady, fmt.Sprintf("OSImage %s: %s: %s", obs.image.Name, ready.Reason, ready.Message)}
	}
	return nil
}

// currentRevision returns the revision of what the NodeType says now. Where the NodeType's own part equals that of the target
// or the stable revision, it is that revision: a change of the NodeProvider alone must neither start a Rollout nor prevent a
// rollback.
func currentRevision(obs observation) (*v1alpha1.NodeTypeRevision, *obstacle) {
	inputs := revision.Inputs{NodeType: obs.nodeType, Provider: obs.provider, Image: obs.image}
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
	for _, name := range []string{obs.nodeType.Status.TargetRevision, obs.nodeType.Status.StableRevision} {
		if kept := obs.revisions[name]; kept != nil && kept.Annotations[v1alpha1.AnnotationInputs] == own {
			return kept, nil
		}
	}
	return &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{
		Name: revision.Name(obs.nodeType.Name, digest), Annotations: map[string]string{v1alpha1.AnnotationInputs: own},
	}, Spec: spec}, nil
}

// facts returns what revisionrollout.Plan decides by.
func facts(obs observation, found finding) revisionrollout.Facts {
	f := revisionrollout.Facts{
		Generation: obs.nodeType.Generation, Stable: obs.nodeType.Status.Stable(), Target: obs.nodeType.Status.Target(),
	}
	if found.revision != nil {
		f.Desired = v1alpha1.RenderedRevision{Revision: found.revision.Name, Rendering: found.rendered.Rendering.Name}
	}
	for i := range obs.rollouts {
		o := &obs.rollouts[i]
		f.Rollouts = append(f.Rollouts, revisionrollout.Rollout{Name: o.Name, From: o.Spec.Source(), To: o.Spec.Target(), Phase: o.Status.Phase})
	}
	for i := range obs.machines {
		m := &obs.machines[i]
		f.Machines = append(f.Machines, revisionrollout.Machine{Desired: rollout.DesiredRevision(m, f.Target), Installed: m.Status.Installed(), Deleting: m.DeletionTimestamp != nil})
	}
	for _, revision := range obs.revisions {
		f.Revisions = append(f.Revisions, revisionrollout.Revision{Name: revision.Name, Created: revision.CreationTimestamp.Time})
	}
	return f
}
