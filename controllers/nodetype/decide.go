package nodetype

import (
	"fmt"
	"slices"
	"strings"

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

// assessment is the result of decide.
type assessment struct {
	// problem is why no nodes can be made from the NodeType; nil: they can.
	problem *problem
	// warnings are about settings that were accepted and may not work.
	warnings []feasibility.Finding
	// revision is that of the NodeType's current spec; nil while there is a problem.
	revision *v1alpha1.NodeTypeRevision
	// rendered is the rendering that was chosen for the revision. made is the name of the rendering that this version of Ingot makes for
	// it, and refusal is why it makes none.
	rendered      rendering.Choice
	made, refusal string
}

// problem is a reason and a message of the condition Ready that is False.
type problem struct {
	reason  string
	message string
}

// decide joins the result of controllers/plan/feasibility, which checks the manifests, with checks that need the cluster. A revision that
// has a rendering is checked with the plan of that rendering.
func decide(obs observation, resolve presentation.Resolver) assessment {
	out := revisionAndRendering(obs, resolve)
	in := feasibility.Inputs{NodeType: obs.nodeType, Image: obs.image, Provider: obs.provider, Resolve: resolve}
	if r := out.rendered.Rendering; r != nil {
		in.Pinned = &r.Spec.Plan
	}
	judgement := feasibility.Check(in)
	for _, o := range []func() *problem{
		func() *problem { return providerProblem(obs, judgement) },
		func() *problem { return namespaceProblem(obs) },
		func() *problem { return imageProblem(obs, judgement) },
	} {
		if o := o(); o != nil {
			return assessment{problem: o}
		}
	}
	if o := problemOf(judgement.Refusals); o != nil {
		return assessment{problem: o}
	}
	if out.problem != nil {
		return assessment{problem: out.problem, made: out.made}
	}
	out.warnings = judgement.Warnings
	return out
}

// revisionAndRendering returns the revision of the NodeType's current spec and its rendering. There is none without an OSImage whose
// checksum is known.
func revisionAndRendering(obs observation, resolve presentation.Resolver) assessment {
	if obs.image == nil || obs.provider == nil || obs.image.Status.Checksum == "" {
		return assessment{}
	}
	if s := obs.nodeType.Status; s.StableRevision != "" && s.StableRendering == "" {
		return assessment{problem: &problem{v1alpha1.ReasonOlderShape, fmt.Sprintf(
			"status.stableRevision %s has no rendering: an earlier version of Ingot installed its Machines and kept none, so what they are to be judged by is not known, and nothing is done with them: delete Machines and NodeType, and make them again", s.StableRevision)}}
	}
	revised, o := currentRevision(obs)
	if o != nil {
		return assessment{problem: o}
	}
	out := assessment{revision: revised}
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
		return assessment{problem: &problem{v1alpha1.ReasonRenderingUnreadable, err.Error()}}
	case out.rendered.LostRendering != "":
		return assessment{made: out.made, problem: &problem{v1alpha1.ReasonRenderingLost, fmt.Sprintf(
			"NodeTypeRendering %s, by which the Machines are judged, does not exist, and this version of Ingot makes another one: restore it from a backup, or run the version that made it; ingot rollout refresh %s installs all Machines anew", out.rendered.LostRendering, obs.nodeType.Name)}}
	case out.rendered.Rendering == nil:
		return assessment{problem: &problem{v1alpha1.ReasonPresentationInvalid, out.refusal}}
	}
	return out
}

// problemOf joins findings to one problem with the reason of the first; nil: there are none.
func problemOf(findings []feasibility.Finding) *problem {
	if len(findings) == 0 {
		return nil
	}
	texts := make([]string, len(findings))
	for i, f := range findings {
		texts[i] = f.String()
	}
	return &problem{findings[0].Reason, strings.Join(texts, "; ")}
}

// withReason returns the findings that have the reason.
func withReason(reason string, findings []feasibility.Finding) []feasibility.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f feasibility.Finding) bool { return f.Reason != reason })
}

// providerProblem returns a problem if the NodeProvider does not exist or is not supported.
func providerProblem(obs observation, judgement feasibility.Result) *problem {
	if o := problemOf(withReason(v1alpha1.ReasonProviderNotFound, judgement.Missing)); o != nil {
		return o
	}
	if o := problemOf(withReason(v1alpha1.ReasonProviderUnsupported, judgement.Refusals)); o != nil {
		return o
	}
	return nil
}

// namespaceProblem returns a problem if the host namespace is not the NodeProvider's. The controller of NodeProviders claims it and says why it
// cannot.
func namespaceProblem(obs observation) *problem {
	if ready := meta.FindStatusCondition(obs.provider.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		return &problem{ready.Reason, readyMessage("NodeProvider "+obs.provider.Name, ready)}
	}
	if obs.namespace == nil || obs.namespace.Annotations[v1alpha1.AnnotationNodeProvider] != obs.provider.Name {
		return &problem{v1alpha1.ReasonHostNamespaceUnclaimed, fmt.Sprintf("NodeProvider %s has not claimed its host namespace %s yet", obs.provider.Name, obs.provider.Spec.HostNamespace)}
	}
	return nil
}

// readyMessage returns the message of a condition Ready for the condition of the NodeType, which the Machines of all its tenants repeat. That of an
// object that is being deleted counts who uses it, and gives advice to whoever deleted it.
func readyMessage(name string, ready *metav1.Condition) string {
	if ready.Reason == v1alpha1.ReasonInUse {
		return name + " is being deleted, and is kept for those that use it already"
	}
	return ready.Message
}

// imageProblem returns a problem if the OSImage does not exist or is not Ready.
func imageProblem(obs observation, judgement feasibility.Result) *problem {
	if o := problemOf(withReason(v1alpha1.ReasonOSImageNotFound, judgement.Missing)); o != nil {
		return o
	}
	ready := meta.FindStatusCondition(obs.image.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return &problem{v1alpha1.ReasonOSImageNotReady, fmt.Sprintf("OSImage %s has not been checked yet", obs.image.Name)}
	}
	if ready.Status != metav1.ConditionTrue || obs.image.Status.Checksum == "" {
		return &problem{v1alpha1.ReasonOSImageNotReady, fmt.Sprintf("OSImage %s: %s: %s", obs.image.Name, ready.Reason, readyMessage("OSImage "+obs.image.Name, ready))}
	}
	return nil
}

// requestedRevision returns the kept revision whose rendering spec.rendering names; empty: none.
func requestedRevision(obs observation) string {
	for i := range obs.renderings {
		if r := &obs.renderings[i]; r.Name == obs.nodeType.Spec.Rendering {
			return r.Spec.RevisionRef.Name
		}
	}
	return ""
}

// currentRevision returns the revision of the NodeType's current spec. If the NodeType's own part equals that of the revision whose
// rendering the spec requests, of the target or of the stable revision, it is that revision: a change of the NodeProvider alone must
// neither start a Rollout nor prevent a rollback.
func currentRevision(obs observation) (*v1alpha1.NodeTypeRevision, *problem) {
	inputs := revision.Inputs{NodeType: obs.nodeType, Provider: obs.provider, Image: obs.image}
	spec, err := revision.Build(inputs)
	if err != nil {
		return nil, &problem{v1alpha1.ReasonOSImageNotReady, err.Error()}
	}
	digest, err := revision.Digest(spec)
	if err != nil {
		return nil, &problem{v1alpha1.ReasonPresentationInvalid, err.Error()}
	}
	own, err := revision.OwnDigest(inputs)
	if err != nil {
		return nil, &problem{v1alpha1.ReasonPresentationInvalid, err.Error()}
	}
	for _, name := range []string{requestedRevision(obs), obs.nodeType.Status.TargetRevision, obs.nodeType.Status.StableRevision} {
		if kept := obs.revisions[name]; kept != nil && kept.Annotations[v1alpha1.AnnotationInputs] == own {
			return kept, nil
		}
	}
	return &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{
		Name: revision.Name(obs.nodeType.Name, digest), Annotations: map[string]string{v1alpha1.AnnotationInputs: own},
	}, Spec: spec}, nil
}

// facts returns what revisionrollout.Plan decides by.
func facts(obs observation, assessed assessment) revisionrollout.Facts {
	f := revisionrollout.Facts{
		Generation: obs.nodeType.Generation, Stable: obs.nodeType.Status.Stable(), Target: obs.nodeType.Status.Target(),
	}
	if assessed.revision != nil {
		f.Desired = v1alpha1.RenderedRevision{Revision: assessed.revision.Name, Rendering: assessed.rendered.Rendering.Name}
	}
	for i := range obs.rollouts {
		o := &obs.rollouts[i]
		f.Rollouts = append(f.Rollouts, revisionrollout.Rollout{Name: o.Name, From: o.Spec.Source(), To: o.Spec.Target(), Phase: o.Status.Phase})
	}
	for i := range obs.machines {
		m := &obs.machines[i]
		f.Machines = append(f.Machines, revisionrollout.Machine{Desired: rollout.DesiredRevision(m, f.Target), Installed: obs.installed(m), Deleting: m.DeletionTimestamp != nil})
	}
	for _, revision := range obs.revisions {
		f.Revisions = append(f.Revisions, revisionrollout.Revision{Name: revision.Name, Created: revision.CreationTimestamp.Time})
	}
	return f
}
