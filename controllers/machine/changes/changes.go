// Package changes says which changes of a NodeType or a HostRecord concern its Machines.
package changes

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// OfNodeType leaves out the counts of hosts and Machines in the status, but not why it is not Ready: a Machine that
// waits for it quotes that.
var OfNodeType = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*v1alpha1.NodeType)
	after, ok2 := e.ObjectNew.(*v1alpha1.NodeType)
	return ok1 && ok2 && (before.Generation != after.Generation || before.Status.Stable() != after.Status.Stable() ||
		before.Status.Target() != after.Status.Target() || trouble(before) != trouble(after))
}}

// trouble is why the NodeType is not Ready; empty when it is.
func trouble(t *v1alpha1.NodeType) string {
	switch c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); {
	case c == nil:
		return "not judged"
	case c.Status == metav1.ConditionTrue:
		return ""
	default:
		return c.Reason + c.Message
	}
}

// OfRecord leaves out bytes: only every quarter of an image reaches a Machine's status.
var OfRecord = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*v1alpha1.HostRecord)
	after, ok2 := e.ObjectNew.(*v1alpha1.HostRecord)
	return ok1 && ok2 && (before.Generation != after.Generation || recordDigest(before) != recordDigest(after))
}}

func recordDigest(r *v1alpha1.HostRecord) string {
	s := r.Status
	text := fmt.Sprint(s.Installed != nil, s.Erased != nil, s.LastTenant)
	if s.Error != nil {
		text += " " + s.Error.Reason
	}
	if s.Power != nil {
		text += fmt.Sprint(" ", s.Power.State, s.Power.ObservedGeneration)
	}
	if w := s.Wanted; w != nil {
		text += fmt.Sprint(" ", w.Number, w.Outcome)
	}
	if a := s.Attempt; a != nil {
		quarter := int64(0)
		if a.TotalBytes > 0 {
			quarter = 4 * a.DoneBytes / a.TotalBytes
		}
		text += fmt.Sprint(" ", a.Number, a.State, a.Step, quarter)
	}
	return text
}
