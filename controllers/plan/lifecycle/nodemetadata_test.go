package lifecycle

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/contest"
)

// removeMetadata plans a Machine for the time, while somebody removes a label and a taint whenever they are on its Node. It returns how often they
// were placed and how many events there were.
func removeMetadata(f *Facts, duration time.Duration) (placed, events int) {
	for end := f.Now.Add(duration); f.Now.Before(end); f.Now = f.Now.Add(time.Second) {
		f.Node.Missing = NodeMetadata{Labels: []string{"team"}, Taints: []string{"gpu"}, Writer: "sweeper"}
		d := Plan(*f)
		if d.Action != nil && d.Action.Kind == SyncNodeMetadata {
			placed++
		}
		events += len(d.Events)
		f.Machine.Status = d.Status
	}
	return placed, events
}

func TestMetadataThatOthersRemoveIsPlacedEverMoreSeldom(t *testing.T) {
	f := factsIn(t, v1alpha1.MachineReady)
	f.Machine.Status = Plan(f).Status
	placed, events := removeMetadata(&f, time.Hour)
	if placed < 12 || placed > 21 || events != 1 {
		t.Errorf("placed %d times in an hour, %d events", placed, events)
	}
	kept := func(d Decision) *metav1.Condition {
		return meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionNodeMetadataKept)
	}
	d := Plan(f)
	if c := kept(d); c == nil || c.Reason != v1alpha1.ReasonNodeMetadataRemovedByOthers || !strings.Contains(c.Message, "(label team, taint gpu)") || !strings.Contains(c.Message, "by sweeper") || d.RequeueAfter <= 0 {
		t.Errorf("%+v, again after %s", c, d.RequeueAfter)
	}
	if ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue || d.Status.Phase != v1alpha1.MachineReady {
		t.Errorf("the Machine is not Ready: %+v", ready)
	}
	// The program is gone.
	f.Machine.Status, f.Node.Missing = d.Status, NodeMetadata{}
	f.Now = f.Machine.Status.NodeMetadata.PlacedAt.Add(contest.Window - time.Second)
	if d = Plan(f); kept(d).Status != metav1.ConditionFalse || d.RequeueAfter != time.Second {
		t.Errorf("before the time is over: %+v, again after %s", kept(d), d.RequeueAfter)
	}
	f.Now = f.Now.Add(time.Second)
	if d = Plan(f); kept(d).Status != metav1.ConditionTrue || d.Status.NodeMetadata != nil || d.RequeueAfter != 0 {
		t.Errorf("they have stayed: %+v, %+v", kept(d), d.Status.NodeMetadata)
	}
}

func TestWhatIsNoRemovalOfMetadataIsNotCounted(t *testing.T) {
	for name, change := range map[string]func(*Facts){
		"an edited NodeType": func(f *Facts) { f.NodeType.Generation++ },
		"another Node":       func(f *Facts) { f.Machine.Status.NodeMetadata.NodeUID = "earlier" },
	} {
		f := factsIn(t, v1alpha1.MachineReady)
		removeMetadata(&f, 5*time.Second)
		f.Node.Missing = NodeMetadata{Labels: []string{"team"}}
		if d := Plan(f); d.Action != nil {
			t.Fatalf("%s: no pause: %s", name, d.Action.Kind)
		}
		change(&f)
		if d := Plan(f); d.Action == nil || d.Action.Kind != SyncNodeMetadata || d.Status.NodeMetadata.Removals != 0 {
			t.Errorf("%s: %+v, %+v", name, d.Action, d.Status.NodeMetadata)
		}
	}
	// What was never placed is added without a word.
	f := factsIn(t, v1alpha1.MachineReady)
	f.Node.Missing = NodeMetadata{Labels: []string{"team"}, Writer: "nobody"}
	if d := Plan(f); d.Status.NodeMetadata.Removals != 0 || meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionNodeMetadataKept) != nil {
		t.Errorf("the first placement: %+v", d.Status.NodeMetadata)
	}
}
