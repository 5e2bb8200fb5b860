package rendering

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// digestDigits is how many hex digits of the digest are in a rendering's name. They distinguish the renderings of one revision.
const digestDigits = 8

// New returns the NodeTypeRendering of a plan, without an owner. Equal plans of one revision have equal names.
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

// withoutHints returns the plan without the texts that only people read: warnings and hints.
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

// NameForRevision returns the name of the rendering that a revision has: the NodeType's stable one, else its target, else the
// newest one that exists; empty: none.
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

// Facts are everything that the choice of a revision's rendering depends on.
type Facts struct {
	// Revision is the name of the NodeTypeRevision.
	Revision string
	// Requested is spec.rendering of the NodeType; empty: Ingot chooses.
	Requested string
	// Status of the NodeType.
	Status v1alpha1.NodeTypeStatus
	// Existing are the NodeTypeRenderings that exist, of this revision and perhaps of others.
	Existing []v1alpha1.NodeTypeRendering
	// IsUsed reports whether a Machine has the rendering of that name, or is to be installed from it.
	IsUsed func(rendering string) bool
	// Resolved is the rendering that the running version of Ingot resolves the revision to; nil: it rejects the revision.
	Resolved *v1alpha1.NodeTypeRendering
}

// Choice is the rendering that a revision gets.
type Choice struct {
	// Rendering that Machines are installed from; nil: there is none.
	Rendering *v1alpha1.NodeTypeRendering
	// IsNew is true if Rendering does not exist yet and must be created.
	IsNew bool
	// LostRendering is the name of the rendering that Machines have and that no longer exists; Rendering is nil then.
	LostRendering string
	// UnknownRequest is the name of the requested rendering if it neither exists nor is the resolved one. It is ignored.
	UnknownRequest string
	// Differences are the sentences that say how Resolved differs from Rendering; none: they are equal.
	Differences []string
}

// Choose returns the requested rendering, else the one that the revision has, else the resolved one. A rendering that Machines
// have and that no longer exists is not replaced by another one. If it were: somebody deletes the NodeTypeRendering of a
// hundred Machines, the running version of Ingot resolves the revision to another plan, and a Rollout installs all of them
// again although nobody changed the NodeType.
func Choose(f Facts) (Choice, error) {
	var c Choice
	requested := f.find(f.Requested)
	switch {
	case requested != nil && requested.Spec.RevisionRef.Name == f.Revision:
		c.Rendering = requested
	case f.isResolved(f.Requested):
		c.Rendering, c.IsNew = f.Resolved, true
	default:
		if requested == nil && strings.HasPrefix(f.Requested, f.Revision+"-") {
			c.UnknownRequest = f.Requested
		}
		f.chooseDefault(&c)
	}
	if c.Rendering == nil {
		return c, nil
	}
	plan, err := Plan(c.Rendering)
	if err != nil || f.Resolved == nil {
		return c, err
	}
	c.Differences, err = Differences(plan, f.Resolved.Spec.Plan)
	return c, err
}

// chooseDefault chooses if no rendering is requested.
func (f Facts) chooseDefault(c *Choice) {
	if lost := f.lostRendering(); lost != "" && !f.isResolved(lost) {
		c.LostRendering = lost
		return
	}
	if name := NameForRevision(f.Revision, f.Status, f.Existing); name != "" && f.lostRendering() == "" {
		c.Rendering = f.find(name)
		return
	}
	c.Rendering, c.IsNew = f.Resolved, f.Resolved != nil
}

// lostRendering returns the name of the rendering of the revision that the status names, Machines use, and that does not exist;
// empty: none.
func (f Facts) lostRendering() string {
	for _, has := range []v1alpha1.RenderedRevision{f.Status.Stable(), f.Status.Target()} {
		if has.Revision == f.Revision && has.Rendering != "" && f.find(has.Rendering) == nil && f.IsUsed(has.Rendering) {
			return has.Rendering
		}
	}
	return ""
}

// isResolved reports whether that is the name of the resolved rendering.
func (f Facts) isResolved(name string) bool { return f.Resolved != nil && f.Resolved.Name == name }

// find returns the existing rendering of that name; nil: none.
func (f Facts) find(name string) *v1alpha1.NodeTypeRendering {
	at := slices.IndexFunc(f.Existing, func(r v1alpha1.NodeTypeRendering) bool { return r.Name == name })
	if at < 0 {
		return nil
	}
	return &f.Existing[at]
}

// UnreadableError reports a rendering whose encoding this version of Ingot does not know.
type UnreadableError struct {
	// Rendering is the name of the NodeTypeRendering, Encoding the encoding of its plan.
	Rendering string
	Encoding  int32
}

// Error says what a person must do.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("NodeTypeRendering %s has encoding %d, and this version of Ingot reads 1 to %d: run the version that made it, or a newer one",
		e.Rendering, e.Encoding, v1alpha1.RenderingEncoding)
}

// Plan returns the plan of a rendering that any version of Ingot made. The plan shares the memory of the rendering and must not be
// changed. The error is an *UnreadableError.
func Plan(r *v1alpha1.NodeTypeRendering) (v1alpha1.NodePlan, error) {
	if r.Spec.Encoding < 1 || r.Spec.Encoding > v1alpha1.RenderingEncoding {
		return v1alpha1.NodePlan{}, &UnreadableError{Rendering: r.Name, Encoding: r.Spec.Encoding}
	}
	return r.Spec.Plan, nil
}
