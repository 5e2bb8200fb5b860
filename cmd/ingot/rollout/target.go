package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
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

func (s session) getNodeType(ctx context.Context, name string) (*v1alpha1.NodeType, error) {
	nodeType := &v1alpha1.NodeType{}
	err := s.client.Get(ctx, client.ObjectKey{Name: name}, nodeType)
	if apierrors.IsNotFound(err) {
		known, err := s.nodeTypeNames(ctx)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("read NodeType %s: there is none of that name; NodeTypes are %s", name, listed(known))
	}
	if err != nil {
		return nil, fmt.Errorf("read NodeType %s: %w", name, err)
	}
	return nodeType, nil
}

// patchNodeType writes the NodeType. The request fails when somebody else has changed it since it was read.
func (s session) patchNodeType(ctx context.Context, nodeType, before *v1alpha1.NodeType, opts ...client.PatchOption) error {
	return s.client.Patch(ctx, nodeType, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), opts...)
}
