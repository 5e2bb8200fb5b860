package fleet

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestWhoMayNotListAllNamespacesIsToldToNameOne(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "ingot.dev", Resource: "entitlements"}, "", nil)
	const advice = ": name a namespace that you may see with -n"
	if err := listError("Entitlements", "", forbidden); !strings.HasSuffix(err.Error(), advice) || !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	for namespace, err := range map[string]error{"shared": forbidden, "": apierrors.NewServiceUnavailable("starting")} {
		if err := listError("Entitlements", namespace, err); !strings.HasPrefix(err.Error(), "list Entitlements: ") || strings.Contains(err.Error(), "-n") {
			t.Errorf("in namespace %q: %v", namespace, err)
		}
	}
}

func TestAnEmptyListSaysWhereNothingIs(t *testing.T) {
	for namespace, want := range map[string]string{"nope": "no Entitlements in namespace nope\n", "": "no Entitlements in any namespace\n"} {
		var out, err bytes.Buffer
		c := &cobra.Command{}
		c.SetOut(&out)
		c.SetErr(&err)
		if e := writeList(c, "Entitlements", namespace, [][]string{{"NAMESPACE"}}); e != nil || out.Len() > 0 || err.String() != want {
			t.Errorf("%v %q %q", e, out.String(), err.String())
		}
		if e := writeList(c, "Entitlements", namespace, [][]string{{"NAMESPACE"}, {"shared"}}); e != nil || out.String() != "NAMESPACE\nshared\n" {
			t.Errorf("%v %q", e, out.String())
		}
	}
}

func TestListsTakeTheFlagOfKubectlForAllNamespaces(t *testing.T) {
	for _, c := range []*cobra.Command{MachinesCommand(), HostsCommand(), EntitlementsCommand()} {
		if err := c.ParseFlags([]string{"-A"}); err != nil {
			t.Errorf("%s: %v", c.Name(), err)
		}
		if err := c.ParseFlags([]string{"-n", "x"}); err != nil {
			t.Fatal(err)
		}
		if err := c.ValidateFlagGroups(); err == nil {
			t.Errorf("%s takes -A with -n", c.Name())
		}
	}
}

// TestAMachineThatATenantsBudgetHoldsBackSaysSo: it is Ready, and would look idle.
func TestAMachineThatATenantsBudgetHoldsBackSaysSo(t *testing.T) {
	held := machine("z-held", v1alpha1.MachineReady, 5, 0, isReady())
	held.Status.Revision, held.Status.HostRef = "h100-1", &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-01"}
	moved, other := *held.DeepCopy(), *held.DeepCopy()
	moved.Name, moved.Status.Revision = "a-moved", "h100-2"
	other.Name, other.Spec.NodeTypeRef.Name = "b-other", "a100"
	goes := *held.DeepCopy()
	goes.Name = "c-goes"
	room := metav1.Condition{Type: v1alpha1.ConditionTenantsHaveRoom, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDevicesHeld, Message: "1 wait for devices that are in use: class legal-h100"}
	rollout := v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "h100-2-1"}, Spec: v1alpha1.RolloutSpec{NodeTypeRef: held.Spec.NodeTypeRef, From: "h100-1", To: "h100-2"},
		Status: v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, InProgress: []string{"research/c-goes"}, Conditions: []metav1.Condition{room}}}
	all := []v1alpha1.Machine{moved, other, goes, held}
	rows := MachineRows(all, nil, []v1alpha1.Rollout{rollout}, noon)
	const says = "rollout h100-2-1 waits for DevicesHeld: 1 wait for devices that are in use: class legal-h100"
	for i, line := range machineTable(rows, noon)[1:] {
		if isIt := strings.HasSuffix(strings.Join(line, "|"), "|"+says); isIt != (i == 0) || isIt != (line[1] == "z-held") {
			t.Errorf("line %d: %s", i, line)
		}
	}
	for _, m := range all {
		found := rolloutAhead(&m, []v1alpha1.Rollout{rollout})
		if want := m.Name == "z-held" || m.Name == "c-goes"; (found != nil) != want {
			t.Errorf("%s: the rollout moves it: %v", m.Name, found != nil)
		}
	}
	if text := Diagnose(&held, nil, &rollout, noon).text(); !strings.Contains(text, "rollout    h100-2-1: Canary, 0 of 0 done; waits for DevicesHeld: 1 wait for") {
		t.Error(text)
	}
	rollout.Status.Phase = v1alpha1.RolloutDone
	if rolloutAhead(&held, []v1alpha1.Rollout{rollout}) != nil {
		t.Error("a Rollout that has ended moves nothing")
	}
}
