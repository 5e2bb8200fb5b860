package nodetype

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/feasibility"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	"github.com/ingot-dev/ingot/controllers/step"
)

// report sets the status to what was observed and decided.
func report(after *v1alpha1.NodeType, obs observation, assessed assessment, decision revisionrollout.Decision, now time.Time) step.Outcome {
	after.Status.ObservedGeneration = after.Generation
	after.Status.StableRevision, after.Status.StableRendering = decision.Stable.Revision, decision.Stable.Rendering
	after.Status.TargetRevision, after.Status.TargetRendering = decision.Target.Revision, decision.Target.Rendering
	reportRendering(after, assessed, now)
	reportGateKey(after, now)
	after.Status.Hosts = v1alpha1.HostCounts{}
	if obs.provider != nil {
		after.Status.Hosts = placement.Count(placement.Request{NodeType: obs.nodeType.Spec, Provider: obs.provider.Spec}, obs.hosts)
		reportHardware(after, obs, now)
	}
	after.Status.Machines = countMachines(obs.machines, after.Status.Target())
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonReady, "nodes can be made"
	for _, w := range assessed.warnings {
		message += "; not certain: " + w.String()
	}
	outcome := step.Done()
	if o := assessed.problem; o != nil {
		status, reason, message = metav1.ConditionFalse, o.reason, o.message
		outcome = step.Stuck(o.message)
	}
	// Ready of a NodeType that is being deleted is the controller inuse's. Without this: each of the two writes it again after the other, for ever.
	if after.DeletionTimestamp == nil {
		step.SetCondition(&after.Status.Conditions, after.Generation, now, v1alpha1.ConditionReady, status, reason, message)
	}
	return outcome
}

// eventAction is the action of all events about NodeTypes.
const eventAction = "Resolve"

// reasonUncertain is the reason of events about settings that were accepted and may not work.
const reasonUncertain = "Uncertain"

// revisionEvents returns the events of a change of the revisions and, once for each new target revision, its warnings.
func revisionEvents(before, after v1alpha1.NodeTypeStatus, warnings []feasibility.Finding) []event.Event {
	var events []event.Event
	if before.TargetRevision != after.TargetRevision {
		events = append(events, event.Normal("RevisionChanged", eventAction, "the target revision is "+after.TargetRevision))
		for _, w := range warnings {
			events = append(events, event.Warning(reasonUncertain, eventAction, w.String()+" ("+w.Rule+")"))
		}
	}
	if before.TargetRevision == after.TargetRevision && before.TargetRendering != after.TargetRendering && before.TargetRendering != "" {
		events = append(events, event.Normal("RenderingChanged", eventAction, "the target rendering of revision "+after.TargetRevision+" is "+after.TargetRendering))
	}
	if before.StableRevision != after.StableRevision {
		events = append(events, event.Normal("StableRevisionChanged", eventAction, "the stable revision, which new Machines get, is "+after.StableRevision))
	}
	return events
}

// reportRendering sets the condition RenderingCurrent, which shows whether this version of Ingot would make the same rendering for the
// revision.
func reportRendering(after *v1alpha1.NodeType, assessed assessment, now time.Time) {
	after.Status.RefreshedRendering = ""
	if o := assessed.problem; o != nil && o.reason == v1alpha1.ReasonRenderingLost {
		after.Status.RefreshedRendering = assessed.made
		step.SetCondition(&after.Status.Conditions, after.Generation, now, v1alpha1.ConditionRenderingCurrent, metav1.ConditionFalse, o.reason, o.message)
		return
	}
	if assessed.revision == nil {
		return // there is nothing to compare, so the condition keeps the result of the last comparison
	}
	c := assessed.rendered
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonRenderingCurrent, "this version of Ingot would render revision "+assessed.revision.Name+" the same way"
	switch {
	case assessed.refusal != "":
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonRenderingRefused
		message = "this version of Ingot refuses what an earlier one accepted, and nodes are made as that one said: " + assessed.refusal
	case len(c.Differences) > 0:
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonRenderingDiffers
		after.Status.RefreshedRendering = assessed.made
		message = fmt.Sprintf("nodes are made and judged as rendering %s says; by this version of Ingot %s. ingot rollout refresh %s brings that to the Machines",
			c.Rendering.Name, strings.Join(c.Differences, "; "), after.Name)
	}
	if c.UnknownRequest != "" {
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonRenderingUnknown
		message = fmt.Sprintf("spec.rendering %s neither exists nor is what this version of Ingot makes, and is ignored: correct it, or remove it; %s", c.UnknownRequest, message)
	}
	step.SetCondition(&after.Status.Conditions, after.Generation, now, v1alpha1.ConditionRenderingCurrent, status, reason, message)
}

// reportGateKey sets the condition GateKeyUnmanaged where the NodeType has a key that only an earlier version of Ingot accepted.
func reportGateKey(after *v1alpha1.NodeType, now time.Time) {
	key := after.Spec.Gate.Key()
	if !v1alpha1.IsManagedTaintKey(key) {
		meta.RemoveStatusCondition(&after.Status.Conditions, v1alpha1.ConditionGateKeyUnmanaged)
		return
	}
	step.SetCondition(&after.Status.Conditions, after.Generation, now, v1alpha1.ConditionGateKeyUnmanaged, metav1.ConditionFalse, v1alpha1.ReasonGateKeyManaged,
		"gate.taintKey "+key+" is a key that programs of Kubernetes, a cloud provider or a vendor place and remove, so that nodes may take pods before they are validated: "+
			"the key cannot change while nodes have it, so create another NodeType with the key "+v1alpha1.DefaultGateTaintKey+" and move the NodePools to it")
}

// reportHardware sets the condition HardwareMatches, which compares the selected hosts with spec.gpu and spec.hardware. A NodeType with neither has
// no such condition.
func reportHardware(after *v1alpha1.NodeType, obs observation, now time.Time) {
	if obs.nodeType.Spec.GPU == nil && obs.nodeType.Spec.Hardware == nil {
		meta.RemoveStatusCondition(&after.Status.Conditions, v1alpha1.ConditionHardwareMatches)
		return
	}
	summary := placement.SummarizeHardware(obs.nodeType.Spec, obs.provider.Spec, obs.hosts)
	status, reason := metav1.ConditionTrue, v1alpha1.ReasonHardwareMatches
	switch {
	case len(summary.Differing) > 0:
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonHardwareDiffers
	case len(summary.Lacking) > 0:
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonHardwareInsufficient
	case summary.Known == 0:
		status, reason = metav1.ConditionUnknown, v1alpha1.ReasonHardwareUnknown
	}
	step.SetCondition(&after.Status.Conditions, after.Generation, now, v1alpha1.ConditionHardwareMatches, status, reason, summary.Message())
}

func countMachines(machines []v1alpha1.Machine, target v1alpha1.RenderedRevision) v1alpha1.MachineCounts {
	var counts v1alpha1.MachineCounts
	for i := range machines {
		counts.Total++
		if meta.IsStatusConditionTrue(machines[i].Status.Conditions, v1alpha1.ConditionReady) {
			counts.Ready++
		}
		if !target.IsZero() && machines[i].Status.Installed() == target {
			counts.UpToDate++
		}
	}
	return counts
}
