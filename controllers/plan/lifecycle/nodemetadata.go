package lifecycle

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/contest"
)

// planNodeMetadata adds the labels and taints that the Node lacks, after a pause where something else keeps removing them.
//
// The node is not cordoned meanwhile, other than one whose gate is removed. A label that is missing opens no node to anybody. A taint of the NodeType
// keeps pods away that do not tolerate it, from a node that is validated: whoever removes it administers the tenant's cluster and could bind those
// pods by name. And there are taints that a program is meant to remove, such as node.cilium.io/agent-not-ready. If the node were cordoned: somebody
// adds that one to a NodeType, and a fleet that works takes no pod any more.
func (s scope) planNodeMetadata() result {
	if !s.hasNodeOfThisAttempt() {
		return done
	}
	c := s.metadataContest()
	switch {
	case s.Node.Missing.isEmpty():
		return done.withRequeueAfter(windowOf(c))
	case c.PauseLeft() > 0:
		return done.withRequeueAfter(c.PauseLeft())
	}
	return actionResult(Action{Kind: SyncNodeMetadata, NodeUID: s.Node.UID}, report{})
}

// windowOf returns when the removals of what is contested and on the Node are forgotten; 0: it is not contested.
func windowOf(c contest.Contest) time.Duration {
	if !c.IsContested() {
		return 0
	}
	return max(c.WindowLeft(), time.Second)
}

// metadataContest is about the labels and taints of the NodeType as it is now. What was added for an earlier spec of it does not count: whoever
// edits a NodeType four times in ten minutes has removed nothing.
func (s scope) metadataContest() contest.Contest {
	var last *contest.Placement
	if p := s.Machine.Status.NodeMetadata; p != nil && p.NodeUID == s.Node.UID && p.NodeTypeGeneration == s.NodeType.Generation {
		last = &contest.Placement{At: p.PlacedAt.Time, Removals: p.Removals, RemovedBy: p.RemovedBy}
	}
	return contest.New(s.Clock, last, s.Node.Missing.isEmpty())
}

// setNodeMetadata writes into the status what is done about the Node's labels and taints, and the condition NodeMetadataKept where something else keeps
// removing them or has done so.
func (p *planner) setNodeMetadata() {
	s := &p.d.Status
	isJoined := s.Phase == v1alpha1.MachineValidating || s.Phase == v1alpha1.MachineReady
	if !isJoined || !p.Tenant.Reachable || !p.hasNodeOfThisAttempt() {
		return
	}
	c := p.metadataContest()
	isPlaced := p.d.Action != nil && p.d.Action.Kind == SyncNodeMetadata
	switch {
	case isPlaced:
		next := c.Next(p.Node.Missing.Writer)
		s.NodeMetadata = &v1alpha1.NodeMetadataStatus{
			NodeUID: p.Node.UID, NodeTypeGeneration: p.NodeType.Generation, PlacedAt: metav1.NewMicroTime(next.At), Removals: next.Removals, RemovedBy: next.RemovedBy,
			Labels: firstKeys(p.Node.Missing.Labels), Taints: firstKeys(p.Node.Missing.Taints),
		}
	case s.NodeMetadata != nil && s.NodeMetadata.Removals > 0 && !c.IsRecent():
		s.NodeMetadata = nil
	}
	p.reportNodeMetadata(c, isPlaced)
}

func (p *planner) reportNodeMetadata(c contest.Contest, isPlaced bool) {
	kept := meta.FindStatusCondition(p.d.Status.Conditions, v1alpha1.ConditionNodeMetadataKept)
	switch {
	case c.IsContested():
		message := p.metadataMessage(c, isPlaced)
		if kept == nil || kept.Status == metav1.ConditionTrue {
			p.addEvent(true, v1alpha1.ReasonNodeMetadataRemovedByOthers, message)
		}
		p.setCondition(v1alpha1.ConditionNodeMetadataKept, metav1.ConditionFalse, v1alpha1.ReasonNodeMetadataRemovedByOthers, message)
	case kept != nil:
		p.setCondition(v1alpha1.ConditionNodeMetadataKept, metav1.ConditionTrue, v1alpha1.ReasonNodeMetadataKept, "the Node keeps the labels and taints of its NodeType")
	}
}

// maxKeys is how many keys of labels, and of taints, the status names.
const maxKeys = 8

func firstKeys(keys []string) []string { return keys[:min(len(keys), maxKeys)] }

// metadataMessage says what is removed, by whom, and what can be done.
func (p *planner) metadataMessage(c contest.Contest, isPlaced bool) string {
	placed := p.d.Status.NodeMetadata
	var keys []string
	for _, key := range placed.Labels {
		keys = append(keys, "label "+key)
	}
	for _, key := range placed.Taints {
		keys = append(keys, "taint "+key)
	}
	text := c.Text("what its NodeType sets on Node "+p.Machine.Name+" ("+strings.Join(keys, ", ")+")", isPlaced, p.Node.Missing.Writer)
	text += ": have that program leave it alone, or take it out of spec.node of the NodeType"
	if len(placed.Taints) > 0 {
		text += "; while the taint is missing, pods that do not tolerate it may be bound to the Node"
	}
	return text
}
