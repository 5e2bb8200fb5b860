package nodepool

import (
	"context"
	"errors"
	"fmt"
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

// act creates or deletes Machines. The events of what was done before an error are returned with it.
func (r *Reconciler) act(ctx context.Context, obs observation, decision scaling.Decision) ([]event.Event, step.Outcome) {
	var events []event.Event
	for i := range decision.Create {
		if i == batch {
			return events, step.Wait("more Machines are to be created", time.Second)
		}
		name, err := r.createMachine(ctx, obs.pool)
		if err != nil {
			return events, step.Retry(err)
		}
		events = append(events, event.Normal("MachineCreated", eventAction, "created Machine "+name))
	}
	for i, deletion := range decision.Delete {
		if i == batch {
			return events, step.Wait("more Machines are to be deleted", time.Second)
		}
		if err := r.deleteMachine(ctx, obs, deletion.Name); err != nil {
			return events, step.Retry(err)
		}
		events = append(events, event.Normal("MachineDeleted", eventAction, fmt.Sprintf("deleted Machine %s: %s", deletion.Name, deletion.Reason)))
	}
	return events, step.Done()
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
