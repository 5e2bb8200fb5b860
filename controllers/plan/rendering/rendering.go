package rendering

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// digestDigits of the digest are in a rendering's name: enough to tell the renderings of one revision apart.
const digestDigits = 8

// New makes the NodeTypeRendering of a plan; its owner is the caller's to set. Equal plans of one revision have equal names.
func New(revision string, plan v1alpha1.NodePlan) (*v1alpha1.NodeTypeRendering, error) {
	form, err := json.Marshal(withoutHints(plan))
	if err != nil {
		return nil, fmt.Errorf("encode the plan of NodeTypeRevision %s: %w", revision, err)
	}
	sum := sha256.Sum256(append([]byte("rendering/1\n"), form...))
	return &v1alpha1.NodeTypeRendering{
		ObjectMeta: metav1.ObjectMeta{Name: revision + "-" + hex.EncodeToString(sum[:])[:digestDigits]},
		Spec: v1alpha1.NodeTypeRenderingSpec{
			RevisionRef: v1alpha1.LocalReference{Name: revision}, Encoding: v1alpha1.RenderingEncoding, Plan: plan,
		},
	}, nil
}

// shaping is the plan without what only people read.
func withoutHints(plan v1alpha1.NodePlan) v1alpha1.NodePlan {
	out := *plan.DeepCopy()
	out.Warnings = nil
	e := &out.Expectation
	for i := range e.Resources {
		e.Resources[i].Hint = ""
	}
	for i := range e.Labels {
		e.Labels[i].Hint = ""
	}
	for i := range e.Slices {
		e.Slices[i].Hint = ""
	}
	return out
}

// OfRevision names the rendering that a revision has: the NodeType's stable one, else its target one, else the newest that was kept of it.
// Empty: it has none.
func NameForRevision(revision string, status v1alpha1.NodeTypeStatus, existing []v1alpha1.NodeTypeRendering) string {
	ofRevision := slices.DeleteFunc(slices.Clone(existing), func(r v1alpha1.NodeTypeRendering) bool { return r.Spec.RevisionRef.Name != revision })
	for _, has := range []v1alpha1.RenderedRevision{status.Stable(), status.Target()} {
		if has.Revision == revision && slices.ContainsFunc(ofRevision, func(r v1alpha1.NodeTypeRendering) bool { return r.Name == has.Rendering }) {
			return has.Rendering
		}
	}
	if len(ofRevision) == 0 {
		return ""
	}
	newest := slices.MaxFunc(ofRevision, func(a, b v1alpha1.NodeTypeRendering) int {
		return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return newest.Name
}

// UnreadableError is a rendering of an encoding that this version does not know.
type UnreadableError struct {
	// Rendering is the name of the NodeTypeRendering, Encoding that of its plan.
	Rendering string
	Encoding  int32
}

// Error says what a person must do.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("NodeTypeRendering %s has encoding %d, and this version of Ingot reads 1 to %d: run the version that made it, or a newer one",
		e.Rendering, e.Encoding, v1alpha1.RenderingEncoding)
}

// Plan is the plan of a rendering, whichever version of Ingot made it; it shares the rendering's memory, and nobody changes it. The error is an *UnreadableError.
func Plan(r *v1alpha1.NodeTypeRendering) (v1alpha1.NodePlan, error) {
	if r.Spec.Encoding < 1 || r.Spec.Encoding > v1alpha1.RenderingEncoding {
		return v1alpha1.NodePlan{}, &UnreadableError{Rendering: r.Name, Encoding: r.Spec.Encoding}
	}
	return r.Spec.Plan, nil
}
