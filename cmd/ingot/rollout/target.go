package rollout

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/revision"
)

// refresh sets the NodeType's rendering to the one that the running version of Ingot makes of the target revision.
func refresh(ctx context.Context, s session, args []string) error {
	nodeType, err := s.getNodeType(ctx, args[0])
	if err != nil {
		return err
	}
	to, current := nodeType.Status.RefreshedRendering, nodeType.Status.TargetRendering
	condition := meta.FindStatusCondition(nodeType.Status.Conditions, v1alpha1.ConditionRenderingCurrent)
	switch {
	case nodeType.Status.ObservedGeneration < nodeType.Generation:
		return fmt.Errorf("NodeType %s was changed, and the manager has not looked at it since: is ingot-manager running? Try again", args[0])
	case to == "" && condition == nil:
		return fmt.Errorf("NodeType %s has not been judged yet: is ingot-manager running? ingot rollout status shows what is under way", args[0])
	case to == "":
		return fmt.Errorf("NodeType %s has nothing to refresh: %s", args[0], condition.Message)
	case nodeType.Spec.Rendering == to:
		return s.printResult("NodeType %s asks for rendering %s already", args[0], to)
	}
	before := nodeType.DeepCopy()
	nodeType.Spec.Rendering = to
	if err := s.patchNodeType(ctx, nodeType, before); err != nil {
		return fmt.Errorf("set NodeType %s to rendering %s: %w", args[0], to, err)
	}
	return s.printResult("NodeType %s asks for rendering %s instead of %s; its Machines are installed again, the canary first: ingot rollout status %s", args[0], to, current, args[0])
}

// undo sets the NodeType back to its stable revision and rendering.
func undo(ctx context.Context, s session, args []string) error {
	nodeType, err := s.getNodeType(ctx, args[0])
	if err != nil {
		return err
	}
	stable, target := nodeType.Status.Stable(), nodeType.Status.Target()
	switch requested := nodeType.Spec.Rendering; {
	case stable != target:
	case strings.HasPrefix(requested, target.Revision+"-") && requested != target.Rendering:
		// A refresh was requested and has not begun yet: the request is withdrawn.
		target.Rendering = requested
	default:
		// A completed refresh can be undone too, because the rendering before it still exists.
		if stable, err = s.sourceOfRefresh(ctx, args[0], target); err != nil {
			return err
		}
	}
	if stable.IsZero() || stable == target {
		return fmt.Errorf("NodeType %s has nothing to undo: its stable revision, %s, is what it asks for", args[0], target.Revision)
	}
	if err := s.client.Get(ctx, client.ObjectKey{Name: stable.Rendering}, &v1alpha1.NodeTypeRendering{}); err != nil {
		return fmt.Errorf("read NodeTypeRendering %s, to which NodeType %s is to be set back: %w", stable.Rendering, args[0], err)
	}
	before := nodeType.DeepCopy()
	done := fmt.Sprintf("rendering %s", stable.Rendering)
	if stable.Revision != target.Revision {
		image, err := s.restoreRevision(ctx, nodeType, stable.Revision)
		if err != nil {
			return err
		}
		done = fmt.Sprintf("revision %s, image %s", stable.Revision, image)
	}
	nodeType.Spec.Rendering = stable.Rendering
	if err := s.patchNodeType(ctx, nodeType, before); err != nil {
		return fmt.Errorf("set NodeType %s back to %s: %w", args[0], stable.Revision, err)
	}
	return s.printResult("NodeType %s is set back to %s; Machines that had moved are moved back", args[0], done)
}

// sourceOfRefresh returns what the newest Rollout of the NodeType moved its Machines from, if that was another rendering of the
// target's revision. The zero value means that it was not.
func (s session) sourceOfRefresh(ctx context.Context, nodeType string, target v1alpha1.RenderedRevision) (v1alpha1.RenderedRevision, error) {
	all, err := s.listRollouts(ctx, nodeType)
	if err != nil || len(all) == 0 {
		return v1alpha1.RenderedRevision{}, err
	}
	if last := all[len(all)-1].Spec; last.Target() == target && last.From == last.To {
		return last.Source(), nil
	}
	return v1alpha1.RenderedRevision{}, nil
}

// restoreRevision sets the part of the NodeType's spec that a revision holds back to that revision, and returns the name of its OSImage.
func (s session) restoreRevision(ctx context.Context, nodeType *v1alpha1.NodeType, name string) (image string, err error) {
	to := &v1alpha1.NodeTypeRevision{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, to); err != nil {
		return "", fmt.Errorf("read NodeTypeRevision %s: %w", name, err)
	}
	in := revision.Inputs{NodeType: nodeType, Provider: &v1alpha1.NodeProvider{}, Image: &v1alpha1.OSImage{}}
	if err := s.client.Get(ctx, client.ObjectKey{Name: nodeType.Spec.ProviderRef.Name}, in.Provider); err != nil {
		return "", fmt.Errorf("read NodeProvider %s: %w", nodeType.Spec.ProviderRef.Name, err)
	}
	if err := s.client.Get(ctx, client.ObjectKey{Name: to.Spec.Image.Name}, in.Image); err != nil {
		return "", fmt.Errorf("read OSImage %s of revision %s: %w", to.Spec.Image.Name, name, err)
	}
	if nodeType.Spec, err = revision.Restore(in, to); err != nil {
		return "", fmt.Errorf("set NodeType %s back to %s: %w", nodeType.Name, name, err)
	}
	return to.Spec.Image.Name, nil
}

func (s session) getNodeType(ctx context.Context, name string) (*v1alpha1.NodeType, error) {
	nodeType := &v1alpha1.NodeType{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, nodeType); err != nil {
		return nil, fmt.Errorf("read NodeType %s: %w", name, err)
	}
	return nodeType, nil
}

// patchNodeType writes the NodeType. The request fails when somebody else has changed it since it was read.
func (s session) patchNodeType(ctx context.Context, nodeType, before *v1alpha1.NodeType) error {
	return s.client.Patch(ctx, nodeType, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
