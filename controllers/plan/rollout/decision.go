package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Decision is what to do about a Rollout now.
type Decision struct {
	// Status is the Rollout's next status, to be written under the resource version of the Rollout that Facts were read from.
	Status v1alpha1.RolloutStatus
	// Start names the Machines to be started now, one at most: set spec.revision and spec.rendering to Rollout.To and the label
	// v1alpha1.LabelRollout to Rollout.Name in one request, under the resource version of the Machine that Facts were read
	// from. It rests on the status as read, so it does not matter which is done first, it or the write of Status.
	Start []types.NamespacedName
	// Mark names Machines to be marked without being started, one at most: set the label v1alpha1.LabelRollout to Rollout.Name,
	// under the resource version of the Machine that Facts were read from. The Rollout before this one had named them.
	Mark []types.NamespacedName
	// Events to emit after the status was written.
	Events []Event
	// Again: plan again at once; what this decision wrote opens the way to the next start.
	PlanAgain bool
	// Requeue is when to look again although nothing was seen to change; 0: only when something changes.
	RequeueAfter time.Duration
	// Done: the rollout is settled, now or before.
	Done bool
}

// Event is one line in a Rollout's history. Its reason is the phase that began.
type Event struct {
	Warning         bool
	Reason, Message string
}
