package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/rendering"
	"github.com/ingot-dev/ingot/controllers/plan/revision"
)

// undoOptions are the flags of undo.
type undoOptions struct {
	toRevision, toRendering string
	isDryRun                bool
}

// newUndoCommand returns `ingot rollout undo`.
func newUndoCommand() *cobra.Command {
	var opts undoOptions
	c := newCommand("undo NODETYPE", "Set the NodeType back to what was admitted before, or to a revision that is kept", cobra.ExactArgs(1),
		func(ctx context.Context, s session, args []string) error { return undo(ctx, s, args[0], opts) })
	c.Flags().StringVar(&opts.toRevision, "to-revision", "", "the revision to go back to; ingot rollout history lists them (default: while a rollout is under way the stable one, else the one that was admitted before it)")
	c.Flags().StringVar(&opts.toRendering, "to-rendering", "", "the rendering of that revision to go back to (default: the one that was admitted last)")
	c.Flags().BoolVar(&opts.isDryRun, "dry-run", false, "have the API server check the change, and change nothing")
	return c
}

// kept is what is kept of a NodeType's past.
type kept struct {
	nodeType   *v1alpha1.NodeType
	revisions  []v1alpha1.NodeTypeRevision
	renderings []v1alpha1.NodeTypeRendering
	// rollouts of the NodeType, the newest last.
	rollouts []v1alpha1.Rollout
}

// readKept reads what is kept of a NodeType's past. The revisions are ordered by age, the newest first.
func (s session) readKept(ctx context.Context, name string) (kept, error) {
	nodeType, err := s.getNodeType(ctx, name)
	if err != nil {
		return kept{}, err
	}
	k := kept{nodeType: nodeType}
	var revisions v1alpha1.NodeTypeRevisionList
	if err := s.client.List(ctx, &revisions); err != nil {
		return kept{}, fmt.Errorf("list NodeTypeRevisions: %w", err)
	}
	k.revisions = slices.DeleteFunc(revisions.Items, func(r v1alpha1.NodeTypeRevision) bool { return r.Spec.NodeTypeRef.Name != name })
	slices.SortFunc(k.revisions, func(a, b v1alpha1.NodeTypeRevision) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var renderings v1alpha1.NodeTypeRenderingList
	if err := s.client.List(ctx, &renderings); err != nil {
		return kept{}, fmt.Errorf("list NodeTypeRenderings: %w", err)
	}
	k.renderings = slices.DeleteFunc(renderings.Items, func(r v1alpha1.NodeTypeRendering) bool { return k.revision(r.Spec.RevisionRef.Name) == nil })
	k.rollouts, err = s.listRollouts(ctx, name)
	return k, err
}

// revision returns the revision of that name; nil: it is not kept.
func (k kept) revision(name string) *v1alpha1.NodeTypeRevision {
	at := slices.IndexFunc(k.revisions, func(r v1alpha1.NodeTypeRevision) bool { return r.Name == name })
	if at < 0 {
		return nil
	}
	return &k.revisions[at]
}

// rendering returns the rendering of that name; nil: it is not kept.
func (k kept) rendering(name string) *v1alpha1.NodeTypeRendering {
	at := slices.IndexFunc(k.renderings, func(r v1alpha1.NodeTypeRendering) bool { return r.Name == name })
	if at < 0 {
		return nil
	}
	return &k.renderings[at]
}

// admitted returns what new Machines were given in the course of time, the newest first: the targets of the Rollouts that were completed, and what
// Rollouts moved Machines from. A Rollout that was stopped or superseded has admitted nothing, so what the next one moves Machines back from is left
// out.
func (k kept) admitted() []v1alpha1.RenderedRevision {
	var all []v1alpha1.RenderedRevision
	for i, r := range k.rollouts {
		isBack := i > 0 && k.rollouts[i-1].Spec.Target() == r.Spec.Source() && k.rollouts[i-1].Status.Phase != v1alpha1.RolloutDone
		if !isBack {
			all = append(all, r.Spec.Source())
		}
		if r.Status.Phase == v1alpha1.RolloutDone {
			all = append(all, r.Spec.Target())
		}
	}
	slices.Reverse(all)
	return all
}

// isKept reports whether both names are those of kept objects that belong together.
func (k kept) isKept(pair v1alpha1.RenderedRevision) bool {
	r := k.rendering(pair.Rendering)
	return k.revision(pair.Revision) != nil && r != nil && r.Spec.RevisionRef.Name == pair.Revision
}

// undo sets the NodeType back.
func undo(ctx context.Context, s session, name string, opts undoOptions) error {
	k, err := s.readKept(ctx, name)
	if err != nil {
		return err
	}
	to, err := k.undoTarget(opts)
	if err != nil {
		return err
	}
	nodeType, before := k.nodeType, k.nodeType.DeepCopy()
	done := fmt.Sprintf("rendering %s", to.Rendering)
	if to.Revision != nodeType.Status.TargetRevision {
		image, err := s.restoreRevision(ctx, nodeType, k.revision(to.Revision))
		if err != nil {
			return err
		}
		done = fmt.Sprintf("revision %s, image %s, rendering %s", to.Revision, image, to.Rendering)
	}
	nodeType.Spec.Rendering = to.Rendering
	var patchOptions []client.PatchOption
	if opts.isDryRun {
		patchOptions = append(patchOptions, client.DryRunAll)
	}
	if err := s.patchNodeType(ctx, nodeType, before, patchOptions...); err != nil {
		return fmt.Errorf("set NodeType %s back to %s: %w", name, to.Revision, err)
	}
	if opts.isDryRun {
		return s.printResult("NodeType %s would be set back to %s; nothing was changed", name, done)
	}
	return s.printResult("NodeType %s is set back to %s; Machines that had moved are moved back: ingot rollout status %s", name, done, name)
}

// undoTarget returns what the flags ask for.
func (k kept) undoTarget(opts undoOptions) (v1alpha1.RenderedRevision, error) {
	to := v1alpha1.RenderedRevision{Revision: opts.toRevision, Rendering: opts.toRendering}
	if to.IsZero() {
		return k.defaultTarget()
	}
	if to.Revision != "" && k.revision(to.Revision) == nil {
		return to, fmt.Errorf("NodeType %s has no revision %s: %s", k.nodeType.Name, to.Revision, k.revisionsText())
	}
	if to.Rendering != "" {
		r := k.rendering(to.Rendering)
		if r == nil || to.Revision != "" && r.Spec.RevisionRef.Name != to.Revision {
			return to, fmt.Errorf("there is no rendering %s of %s: %s", to.Rendering, cmp.Or(to.Revision, "NodeType "+k.nodeType.Name), k.renderingsText(to.Revision))
		}
		to.Revision = r.Spec.RevisionRef.Name
	} else if to.Rendering = k.lastRendering(to.Revision); to.Rendering == "" {
		return to, fmt.Errorf("revision %s has no rendering that is kept: set NodeType %s back by hand, which makes one", to.Revision, k.nodeType.Name)
	}
	if k.isRequested(to) {
		return to, fmt.Errorf("NodeType %s asks for revision %s, rendering %s already", k.nodeType.Name, to.Revision, to.Rendering)
	}
	return to, nil
}

// isRequested reports whether the NodeType asks for that already.
func (k kept) isRequested(pair v1alpha1.RenderedRevision) bool {
	return k.nodeType.Status.Target() == pair && !k.isOtherRequested(pair) && k.nodeType.Status.ObservedGeneration == k.nodeType.Generation
}

// isOtherRequested reports whether the NodeType's spec asks for another rendering of the pair's revision.
func (k kept) isOtherRequested(pair v1alpha1.RenderedRevision) bool {
	requested := k.nodeType.Spec.Rendering
	return strings.HasPrefix(requested, pair.Revision+"-") && requested != pair.Rendering
}

// lastRendering returns the rendering of the revision that was admitted last or, if none was, the one that the revision has; empty: none is kept.
func (k kept) lastRendering(revision string) string {
	for _, pair := range append([]v1alpha1.RenderedRevision{k.nodeType.Status.Stable()}, k.admitted()...) {
		if pair.Revision == revision && k.isKept(pair) {
			return pair.Rendering
		}
	}
	return rendering.NameForRevision(revision, k.nodeType.Status, k.renderings)
}

// defaultTarget returns the stable revision and rendering while a rollout is under way, else what was admitted before them.
func (k kept) defaultTarget() (v1alpha1.RenderedRevision, error) {
	stable, target := k.nodeType.Status.Stable(), k.nodeType.Status.Target()
	if !stable.IsZero() && (stable != target || k.isOtherRequested(target)) {
		if !k.isKept(stable) {
			return stable, fmt.Errorf("NodeTypeRevision %s or NodeTypeRendering %s, to which NodeType %s is to be set back, does not exist: %s", stable.Revision, stable.Rendering, k.nodeType.Name, k.revisionsText())
		}
		return stable, nil
	}
	for _, pair := range k.admitted() {
		if pair != stable && k.isKept(pair) {
			return pair, nil
		}
	}
	return stable, fmt.Errorf("NodeType %s has nothing to undo: its stable revision, %s, is what it asks for, and nothing else that was admitted is kept; %s", k.nodeType.Name, target.Revision, k.revisionsText())
}

// revisionsText says which revisions there are, the newest first.
func (k kept) revisionsText() string {
	names := make([]string, 0, len(k.revisions))
	for i := range k.revisions {
		names = append(names, k.revisions[i].Name)
	}
	if len(names) == 0 {
		return "no revision is kept"
	}
	return "kept are, the newest first: " + strings.Join(names, ", ")
}

// renderingsText says which renderings there are of a revision or, if that is empty, of all.
func (k kept) renderingsText(revision string) string {
	var names []string
	for _, r := range k.renderings {
		if revision == "" || r.Spec.RevisionRef.Name == revision {
			names = append(names, r.Name)
		}
	}
	if len(names) == 0 {
		return "none is kept"
	}
	slices.Sort(names)
	return "kept are " + strings.Join(names, ", ")
}

// restoreRevision sets the part of the NodeType's spec that a revision holds back to that revision, and returns the name of its OSImage.
func (s session) restoreRevision(ctx context.Context, nodeType *v1alpha1.NodeType, to *v1alpha1.NodeTypeRevision) (image string, err error) {
	in := revision.Inputs{NodeType: nodeType, Provider: &v1alpha1.NodeProvider{}, Image: &v1alpha1.OSImage{}}
	if err := s.client.Get(ctx, client.ObjectKey{Name: nodeType.Spec.ProviderRef.Name}, in.Provider); err != nil {
		return "", fmt.Errorf("read NodeProvider %s: %w", nodeType.Spec.ProviderRef.Name, err)
	}
	if err := s.client.Get(ctx, client.ObjectKey{Name: to.Spec.Image.Name}, in.Image); err != nil {
		if apierrors.IsNotFound(err) {
			return "", fmt.Errorf("OSImage %s of revision %s does not exist any more: create it again with checksum %s, or choose another revision: ingot rollout history %s",
				to.Spec.Image.Name, to.Name, to.Spec.Image.Checksum, nodeType.Name)
		}
		return "", fmt.Errorf("read OSImage %s of revision %s: %w", to.Spec.Image.Name, to.Name, err)
	}
	if nodeType.Spec, err = revision.Restore(in, to); err != nil {
		var unrestorable *revision.UnrestorableError
		if errors.As(err, &unrestorable) {
			return "", fmt.Errorf("NodeType %s cannot be set back to %s: %w; nothing was changed", nodeType.Name, to.Name, err)
		}
		return "", fmt.Errorf("set NodeType %s back to %s: %w", nodeType.Name, to.Name, err)
	}
	return to.Spec.Image.Name, nil
}
