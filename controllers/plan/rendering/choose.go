package rendering

import (
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Facts are what the choice of a revision's rendering follows from.
type Facts struct {
	// Revision names the NodeTypeRevision.
	Revision string
	// Asked is the NodeType's spec.rendering; empty: it leaves the choice to Ingot.
	Requested string
	// Status of the NodeType.
	Status v1alpha1.NodeTypeStatus
	// Kept are the NodeTypeRenderings that exist; those of other revisions may be among them.
	Existing []v1alpha1.NodeTypeRendering
	// Used says whether a Machine has, or is to have, the rendering of that name.
	IsUsed func(rendering string) bool
	// Made is what the version that runs makes of the revision; nil: it refuses.
	Resolved *v1alpha1.NodeTypeRendering
}

// Choice is which rendering a revision gets.
type Choice struct {
	// Rendering to be installed from; nil: there is none.
	Rendering *v1alpha1.NodeTypeRendering
	// New says that Rendering is Made and is still to be kept.
	IsNew bool
	// Lost names the rendering that nodes are judged by and that exists no more; Rendering is nil then.
	Lost string
	// Unknown is the rendering that was asked for and neither exists nor would be made; it is ignored.
	Unknown string
	// Differences between Rendering and Made, in words; none: what was made is what is kept.
	Differences []string
}

// Choose picks the rendering that was asked for, else the one that the revision has, else the one that was just made. A rendering
// that Machines have and that has been lost is never replaced by another one: they would be rolled because an object was deleted.
func Choose(f Facts) (Choice, error) {
	var c Choice
	asked := f.find(f.Requested)
	switch {
	case asked != nil && asked.Spec.RevisionRef.Name == f.Revision:
		c.Rendering = asked
	case f.isResolved(f.Requested):
		c.Rendering, c.IsNew = f.Resolved, true
	default:
		if asked == nil && strings.HasPrefix(f.Requested, f.Revision+"-") {
			c.Unknown = f.Requested
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

// keepOrMake chooses where nobody has asked for a rendering.
func (f Facts) chooseDefault(c *Choice) {
	if lost := f.lostRendering(); lost != "" && !f.isResolved(lost) {
		c.Lost = lost
		return
	}
	if name := NameForRevision(f.Revision, f.Status, f.Existing); name != "" && f.lostRendering() == "" {
		c.Rendering = f.find(name)
		return
	}
	c.Rendering, c.IsNew = f.Resolved, f.Resolved != nil
}

// lost names the rendering of the revision that the status names and Machines use where it does not exist; empty: there is none.
func (f Facts) lostRendering() string {
	for _, has := range []v1alpha1.RenderedRevision{f.Status.Stable(), f.Status.Target()} {
		if has.Revision == f.Revision && has.Rendering != "" && f.find(has.Rendering) == nil && f.IsUsed(has.Rendering) {
			return has.Rendering
		}
	}
	return ""
}

// isMade says whether the version that runs makes the rendering of that name.
func (f Facts) isResolved(name string) bool { return f.Resolved != nil && f.Resolved.Name == name }

// kept is the rendering of that name; nil: there is none.
func (f Facts) find(name string) *v1alpha1.NodeTypeRendering {
	at := slices.IndexFunc(f.Existing, func(r v1alpha1.NodeTypeRendering) bool { return r.Name == name })
	if at < 0 {
		return nil
	}
	return &f.Existing[at]
}
