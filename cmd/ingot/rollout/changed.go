package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/contest"
)

// creationDelay is how much later than the change of its NodeType a Rollout may be made.
const creationDelay = 5 * time.Second

// readChange returns the line about who changed the NodeType of the Rollout. A NodeType that is gone, or that the caller may not read, has none.
func (s session) readChange(ctx context.Context, r *v1alpha1.Rollout) string {
	var nodeType v1alpha1.NodeType
	if err := s.client.Get(ctx, client.ObjectKey{Name: r.Spec.NodeTypeRef.Name}, &nodeType); err != nil {
		return "not known: NodeType " + r.Spec.NodeTypeRef.Name + " cannot be read: " + err.Error()
	}
	return changeText(nodeType.ManagedFields, r.CreationTimestamp.Time)
}

// changeText says who changed the spec of a NodeType before its Rollout was made, and when. An object's managed fields have the last change of each writer only.
func changeText(fields []metav1.ManagedFieldsEntry, made time.Time) string {
	fields = slices.DeleteFunc(slices.Clone(fields), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" || e.Time == nil })
	before := slices.DeleteFunc(slices.Clone(fields), func(e metav1.ManagedFieldsEntry) bool { return e.Time.After(made.Add(creationDelay)) })
	last, later := contest.LastWrite(before, "f:spec"), ""
	if last == nil {
		last, later = contest.LastWrite(fields, "f:spec"), ", after this Rollout was made"
	}
	if last == nil {
		return "not known: the NodeType's managedFields do not name a writer of its spec; the audit log of the API server does"
	}
	return fmt.Sprintf("%s at %s%s, as the NodeType's managedFields say; the audit log of the API server has the user", input.Line(last.Manager, maxManager), last.Time.UTC().Format(time.RFC3339), later)
}

// maxManager is the API server's limit on the name of a field manager, in bytes.
const maxManager = 128
