package nodetype

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/feasibility"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/succession"
	"github.com/ingot-dev/ingot/controllers/step"
)

// rightsAgain: a RoleBinding is not watched.
const rightsAgain = 15 * time.Second

// report writes what was found and decided into the status.
func report(after *v1alpha1.NodeType, seen observation, found finding, decision succession.Decision, now time.Time) step.Outcome {
	after.Status.ObservedGeneration = after.Generation
	after.Status.StableRevision, after.Status.TargetRevision = decision.Stable, decision.Target
	after.Status.Hosts = v1alpha1.HostCounts{}
	if seen.provider != nil {
		after.Status.Hosts = placement.Count(placement.Request{
			Selector: seen.nodeType.Spec.HostSelector, Zone: seen.nodeType.Spec.Zone, Provider: seen.provider.Spec,
		}, seen.hosts)
	}
	after.Status.Machines = count(seen.machines, after.Status.TargetRevision)
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonReady, "nodes can be made"
	for _, w := range found.warnings {
		message += "; not certain: " + w.String()
	}
	outcome := step.Done()
	if o := found.obstacle; o != nil {
		status, reason, message = metav1.ConditionFalse, o.reason, o.message
		outcome = step.Stuck(o.message)
		if o.reason == v1alpha1.ReasonHostNamespaceDenied {
			outcome = step.Wait(o.message, rightsAgain)
		}
	}
	step.SetCondition(&after.Status.Conditions, after.Generation, now, v1alpha1.ConditionReady, status, reason, message)
	return outcome
}

// reasonUncertain is the reason of events about what was accepted and is not certain.
const reasonUncertain = "Uncertain"

// revisionEvents tell that the revisions changed, and once for each new one what is uncertain about it.
func revisionEvents(before, after v1alpha1.NodeTypeStatus, warnings []feasibility.Finding) []step.Event {
	var told []step.Event
	if before.TargetRevision != after.TargetRevision {
		told = append(told, happened("RevisionChanged", "the target revision is "+after.TargetRevision))
		for _, w := range warnings {
			told = append(told, step.Told(true, reasonUncertain, "Resolve", w.String()+" ("+w.Rule+")"))
		}
	}
	if before.StableRevision != after.StableRevision {
		told = append(told, happened("StableRevisionChanged", "the stable revision, which new Machines get, is "+after.StableRevision))
	}
	return told
}

func happened(reason, message string) step.Event {
	return step.Event{Type: step.Normal, Reason: reason, Action: "Resolve", Message: message}
}

func count(machines []v1alpha1.Machine, target string) v1alpha1.MachineCounts {
	var counts v1alpha1.MachineCounts
	for i := range machines {
		counts.Total++
		if meta.IsStatusConditionTrue(machines[i].Status.Conditions, v1alpha1.ConditionReady) {
			counts.Ready++
		}
		if target != "" && machines[i].Status.Revision == target {
			counts.UpToDate++
		}
	}
	return counts
}
