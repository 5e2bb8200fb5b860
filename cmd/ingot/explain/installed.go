package explain

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/connect"
	"github.com/ingot-dev/ingot/controllers/plan/rendering"
	"github.com/ingot-dev/ingot/presentation"
)

// explainInstalled explains what a Machine of a cluster was installed with and is judged by. It reads what the cluster has stored and
// resolves nothing.
func explainInstalled(ctx context.Context, k client.Reader, namespace, name string) (Explanation, error) {
	machine, err := connect.FindMachine(ctx, k, namespace, name)
	if err != nil {
		return Explanation{}, err
	}
	current := machine.Status.Installed()
	switch {
	case current.Revision != "" && current.Rendering == "":
		return Explanation{}, fmt.Errorf("of Machine %s/%s no rendering is kept: an earlier version of Ingot installed it; delete the Machine and make it again", machine.Namespace, machine.Name)
	case current.Rendering == "":
		return Explanation{}, fmt.Errorf("nothing is installed for Machine %s/%s yet: ingot why %s says what it waits for", machine.Namespace, machine.Name, machine.Name)
	}
	nodeType, revision := &v1alpha1.NodeType{}, &v1alpha1.NodeTypeRevision{}
	if err := k.Get(ctx, client.ObjectKey{Name: machine.Spec.NodeTypeRef.Name}, nodeType); err != nil {
		return Explanation{}, fmt.Errorf("read NodeType %s: %w", machine.Spec.NodeTypeRef.Name, err)
	}
	if err := k.Get(ctx, client.ObjectKey{Name: current.Revision}, revision); err != nil {
		return Explanation{}, fmt.Errorf("read NodeTypeRevision %s: %w", current.Revision, err)
	}
	plan, err := readPlan(ctx, k, current.Rendering)
	if err != nil {
		return Explanation{}, err
	}
	installed, err := compareWithTarget(ctx, k, machine, nodeType, plan)
	if err != nil {
		return Explanation{}, err
	}
	if plan.Expectation, err = presentation.WithDeclaredResources(plan.Expectation, nodeType.Spec.Resources); err != nil {
		return Explanation{}, fmt.Errorf("NodeType %s declares what does not go with rendering %s: %w", nodeType.Name, current.Rendering, err)
	}
	out := newExplanation(nodeType.Name, revision.Spec.Image.Name, revision.Spec.GPU, plan)
	out.Installed = installed
	return out, nil
}

func compareWithTarget(ctx context.Context, k client.Reader, machine *v1alpha1.Machine, nodeType *v1alpha1.NodeType, plan v1alpha1.NodePlan) (*Installed, error) {
	current := machine.Status.Installed()
	out := &Installed{
		Machine: machine.Namespace + "/" + machine.Name, Revision: current.Revision, Rendering: current.Rendering, Target: nodeType.Status.TargetRendering,
		Differences: []string{}, Current: string(metav1.ConditionUnknown), Message: "the NodeType has not been judged: is ingot-manager running?",
	}
	if c := meta.FindStatusCondition(nodeType.Status.Conditions, v1alpha1.ConditionRenderingCurrent); c != nil {
		out.Current, out.Message = string(c.Status), c.Message
	}
	if out.Target == "" || out.Target == current.Rendering {
		return out, nil
	}
	target, err := readPlan(ctx, k, out.Target)
	if err != nil {
		out.Differences = []string{fmt.Sprintf("not known: %v", err)}
		return out, nil
	}
	differences, err := rendering.Differences(plan, target)
	out.Differences = nonNil(differences)
	return out, err
}

func readPlan(ctx context.Context, k client.Reader, name string) (v1alpha1.NodePlan, error) {
	var object v1alpha1.NodeTypeRendering
	if err := k.Get(ctx, client.ObjectKey{Name: name}, &object); err != nil {
		return v1alpha1.NodePlan{}, fmt.Errorf("read NodeTypeRendering %s: %w", name, err)
	}
	return rendering.Plan(&object)
}
