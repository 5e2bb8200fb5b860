package inuse

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/inuse"
	"github.com/ingot-dev/ingot/controllers/step"
)

// report returns the object with its users in the status, and the events of the change. The condition Ready of an object that is being deleted
// is this controller's: the others leave such an object alone.
func report(o object, users *v1alpha1.UsedBy, now time.Time) (client.Object, []event.Event) {
	after := o.DeepCopyObject().(client.Object)
	usedBy, conditions := usageOf(after)
	isNews := *usedBy == nil || (*usedBy).String() != users.String()
	*usedBy = users
	if !o.state().Deleting || users == nil {
		return after, nil
	}
	message := inuse.HeldMessage(o.ref, users)
	if conditions != nil {
		step.SetCondition(conditions, after.GetGeneration(), now, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInUse, message)
		_, before := usageOf(o.Object)
		return after, step.ConditionEvents(*before, *conditions, eventAction, v1alpha1.ConditionReady)
	}
	if !isNews {
		return after, nil
	}
	return after, []event.Event{event.Warning(v1alpha1.ReasonInUse, eventAction, message)}
}

// eventAction is the action of all events of this controller.
const eventAction = "Keep"
