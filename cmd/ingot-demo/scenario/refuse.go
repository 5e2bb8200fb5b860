package scenario

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// refuse writes a NodeType whose layout no GPU can be cut into, and expects to hear so at once. Samples without MIG have none.
func (t *story) refuse(ctx context.Context) error {
	var all v1alpha1.NodeTypeList
	if err := t.w.Fleet.List(ctx, &all); err != nil {
		return fmt.Errorf("list NodeTypes: %w", err)
	}
	for i := range all.Items {
		if gpu := all.Items[i].Spec.GPU; gpu != nil && gpu.Presentation.MIG != nil && len(gpu.Presentation.MIG.Layout) > 0 {
			return t.refuseLike(ctx, &all.Items[i])
		}
	}
	return nil
}

func (t *story) refuseLike(ctx context.Context, sample *v1alpha1.NodeType) error {
	t.s.step("writing a NodeType like %s with a layout that no GPU can be cut into", sample.Name)
	impossible := &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: sample.Name + "-impossible"}, Spec: *sample.Spec.DeepCopy()}
	// The samples' layouts fill their GPUs: one more of each is too many.
	layout := impossible.Spec.GPU.Presentation.MIG.Layout
	last := layout[len(layout)-1].Profiles
	for profile := range last {
		last[profile]++
	}
	err := t.write(ctx, impossible)
	if err != nil {
		t.s.note("%s", err)
	}
	t.promise(apierrors.IsInvalid(err), fmt.Sprint(err), "what no GPU can be cut into is refused when it is written, with what would fit")
	return nil
}

// write tries until the API server reaches the manager, which gives it its certificate first.
func (t *story) write(ctx context.Context, o client.Object) error {
	for deadline := time.Now().Add(t.o.Timeout); ; {
		err := t.w.Fleet.Create(ctx, o, client.DryRunAll)
		if !apierrors.IsInternalError(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}
