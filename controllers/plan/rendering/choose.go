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
	Asked string
	// Status of the NodeType.
	Status v1alpha1.NodeTypeStatus
	// Kept are the NodeTypeRenderings that exist; those of other revisions may be among them.
	Kept []v1alpha1.NodeTypeRendering
	// Used says whether a Machine has, or is to have, the rendering of that name.
	Used func(rendering string) bool
	// Made is what the version that runs makes of the revision; nil: it refuses.
	Made *v1alpha1.NodeTypeRendering
}

// Choice is which rendering a revision gets.
type Choice struct {
	// Rendering to be installed from; nil: there is none.
	Rendering *v1alpha1.NodeTypeRendering
	// New says that Rendering is Made and is still to be kept.
	New bool
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
	asked := f.kept(f.Asked)
	switch {
	case asked != nil && asked.Spec.RevisionRef.Name == f.Revision:
		c.Rendering = asked
	case f.isMade(f.Asked):
		c.Rendering, c.New = f.Made, true
	default:
		if asked == nil && strings.HasPrefix(f.Asked, f.Revision+"-") {
			c.Unknown = f.Asked
		}
		f.keepOrMake(&c)
	}
	if c.Rendering == nil {
		return c, nil
	}
	plan, err := Plan(c.Rendering)
	if err != nil || f.Made == nil {
		return c, err
	}
	c.Differences, err = Differences(plan, f.Made.Spec.Plan)
	return c, err
}

// keepOrMake chooses where nobody has asked for a rendering.
func (f Facts) keepOrMake(c *Choice) {
	if lost := f.lost(); lost != "" && !f.isMade(lost) {
		c.Lost = lost
		return
	}
	if name := OfRevision(f.Revision, f.Status, f.Kept); name != "" && f.lost() == "" {
		c.Rendering = f.kept(name)
		return
	}
	c.Rendering, c.New = f.Made, f.Made != nil
}

// lost names the rendering of the revision that the status names and Machines use where it does not exist; empty: there is none.
func (f Facts) lost() string {
	for _, has := range []v1alpha1.RenderedRevision{f.Status.Stable(), f.Status.Target()} {
		if has.Revision == f.Revision && has.Rendering != "" && f.kept(has.Rendering) == nil && f.Used(has.Rendering) {
			return has.Rendering
		}
	}
	return ""
}

// isMade says whether the version that runs makes the rendering of that name.
func (f Facts) isMade(name string) bool { return f.Made != nil && f.Made.Name == name }

// kept is the rendering of that name; nil: there is none.
func (f Facts) kept(name string) *v1alpha1.NodeTypeRendering {
	at := slices.IndexFunc(f.Kept, func(r v1alpha1.NodeTypeRendering) bool { return r.Name == name })
	if at < 0 {
		return nil
	}
	return &f.Kept[at]
}
