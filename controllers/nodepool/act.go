package nodepool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/scaling"
	"github.com/ingot-dev/ingot/controllers/step"
)

// batch is the highest number of writes in one reconcile, so that a large pool does not block the others.
const batch = 50

// eventAction is the action of all events about NodePools.
const eventAction = "Scale"

// act creates or deletes Machines. The event of what was done before an error is returned with it.
func (r *Reconciler) act(ctx context.Context, obs observation, decision scaling.Decision) ([]event.Event, step.Outcome) {
	var created, deleted []string
	for i := range decision.Create {
		if i == batch {
			return scaleEvents(created, deleted), step.Wait("more Machines are to be created", time.Second)
		}
		name, err := r.createMachine(ctx, obs.pool)
		if err != nil {
			return scaleEvents(created, deleted), step.Retry(err)
		}
		created = append(created, name)
	}
	for i, deletion := range decision.Delete {
		if i == batch {
			return scaleEvents(created, deleted), step.Wait("more Machines are to be deleted", time.Second)
		}
		if err := r.deleteMachine(ctx, obs, deletion.Name); err != nil {
			return scaleEvents(created, deleted), step.Retry(err)
		}
		deleted = append(deleted, deletion.Name+": "+deletion.Reason)
	}
	return scaleEvents(created, deleted), step.Done()
}

// scaleEvents returns one event for all Machines that were created, and one for all that were deleted.
func scaleEvents(created, deleted []string) []event.Event {
	var out []event.Event
	if n := len(created); n > 0 {
		out = append(out, event.Normal("MachineCreated", eventAction, fmt.Sprintf("created %s: %s", machineCount(n), strings.Join(created, ", "))))
	}
	if n := len(deleted); n > 0 {
		out = append(out, event.Normal("MachineDeleted", eventAction, fmt.Sprintf("deleted %s: %s", machineCount(n), strings.Join(deleted, "; "))))
	}
	return out
}

func machineCount(n int) string {
	if n == 1 {
		return "1 Machine"
	}
	return fmt.Sprintf("%d Machines", n)
}

// createMachine creates a Machine of the pool and returns its name.
func (r *Reconciler) createMachine(ctx context.Context, pool *v1alpha1.NodePool) (string, error) {
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pool.Namespace, Name: pool.Name + "-" + r.Suffix(),
			Labels: map[string]string{v1alpha1.LabelNodePool: pool.Name},
			// The machine controller would otherwise add it in an extra write.
			Finalizers: []string{v1alpha1.MachineFinalizer},
		},
		Spec: v1alpha1.MachineSpec{NodeTypeRef: pool.Spec.NodeTypeRef, TenantClusterRef: pool.Spec.TenantClusterRef},
	}
	// A NodeType's name may be longer than a label's value.
	if name := pool.Spec.NodeTypeRef.Name; len(validation.IsValidLabelValue(name)) == 0 {
		machine.Labels[v1alpha1.LabelNodeType] = name
	}
	if err := controllerutil.SetControllerReference(pool, machine, r.Client.Scheme()); err != nil {
		return "", fmt.Errorf("own Machine %s: %w", machine.Name, err)
	}
	if err := r.Client.Create(ctx, machine); err != nil {
		return "", fmt.Errorf("create Machine %s: %w", machine.Name, err)
	}
	return machine.Name, nil
}

// deleteMachine deletes the Machine with the uid and the resource version that the decision is based on. A new Machine of the same name,
// or one that became Ready meanwhile, is not deleted.
func (r *Reconciler) deleteMachine(ctx context.Context, obs observation, name string) error {
	for i := range obs.machines {
		m := &obs.machines[i]
		if m.Name != name {
			continue
		}
		err := r.Client.Delete(ctx, m, client.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete Machine %s: %w", name, err)
		}
		return nil
	}
	return errors.New("Machine " + name + " was judged and is not among the Machines")
}
