package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestEntitlementsThatNeedALookComeFirst(t *testing.T) {
	entitlement := func(tenant string, enforced metav1.Condition, classes ...v1alpha1.EntitledClassStatus) v1alpha1.Entitlement {
		enforced.Type = v1alpha1.ConditionEnforced
		return v1alpha1.Entitlement{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shared", Name: tenant}, Spec: v1alpha1.EntitlementSpec{Tenant: tenant, TenantClusterRef: v1alpha1.LocalReference{Name: "gpus"}},
			Status: v1alpha1.EntitlementStatus{Classes: classes, Conditions: []metav1.Condition{enforced}},
		}
	}
	apart := v1alpha1.EntitledClassStatus{Name: "open", Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionIsolated, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodesDedicated, Message: "set gpu.tenancy"},
	}}
	if got := problemOf(apart); got != "NodesDedicated: set gpu.tenancy" {
		t.Errorf("a class whose nodes are not set up for several tenants: %q", got)
	}
	apart.Conditions[1] = metav1.Condition{Type: v1alpha1.ConditionWithinLimits, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOverEntitled, Message: "3 of 2"}
	if got := problemOf(apart); got != "OverEntitled: 3 of 2" {
		t.Errorf("a class of which its tenant has too much: %q", got)
	}
	class := func(name string, available metav1.Condition) v1alpha1.EntitledClassStatus {
		available.Type = v1alpha1.ConditionAvailable
		return v1alpha1.EntitledClassStatus{Name: name, DeviceClass: "t-" + name, Entitled: 4, Allocated: 2, Pending: 1, Admitted: 8, Conditions: []metav1.Condition{available}}
	}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	all := []v1alpha1.Entitlement{
		entitlement("a", isReady(), class("good", isReady()), class("empty", isNot(v1alpha1.ReasonSelectsNothing, "no device matches"))),
		entitlement("b", isReady()),
		entitlement("z", isNot(v1alpha1.ReasonNameTaken, "NOT ENFORCED: taken"), class("any", isReady())),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shared"}, Spec: v1alpha1.EntitlementSpec{Tenant: "new"}},
	}
	all[0].Status.Waits = []v1alpha1.DeviceWait{
		{Kind: v1alpha1.WaitingPod, Reason: v1alpha1.WaitQuotaExceeded, Count: 2, Since: metav1.NewTime(now.Add(-12 * time.Minute))},
		{Kind: v1alpha1.WaitingClaim, Reason: v1alpha1.WaitUnused, Count: 1, Since: metav1.NewTime(now.Add(time.Minute))},
	}
	waiting := entitlement("y", isReady(), class("busy", isReady()))
	waiting.Status.Waits = []v1alpha1.DeviceWait{{Kind: v1alpha1.WaitingPod, Reason: v1alpha1.WaitUnschedulable, Count: 1, Since: metav1.NewTime(now.Add(-time.Hour))}}
	all = append(all, waiting)
	rows := EntitlementRows(all)
	var lines []string
	for _, line := range entitlementTable(rows, now)[1:] {
		lines = append(lines, strings.Join(line, "|"))
	}
	want := []string{
		"shared|a|a|gpus|empty|t-empty|4|2|1|8|True|2 Pod QuotaExceeded 12m, 1 ResourceClaim Unused 0s|SelectsNothing: no device matches",
		"shared|-|new||-|-|0|0|0|0|False|-|no manager has looked at it yet",
		"shared|z|z|gpus|any|t-any|4|2|1|8|False|-|NameTaken: NOT ENFORCED: taken",
		"shared|a|a|gpus|good|t-good|4|2|1|8|True|-|-",
		"shared|y|y|gpus|busy|t-busy|4|2|1|8|True|1 Pod Unschedulable 60m|-",
		"shared|b|b|gpus|-|-|0|0|0|0|True|-|-",
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestAClassThatWasTakenAwayIsListedWhileClaimsHoldItsDevices: nothing else says who has them.
func TestAClassThatWasTakenAwayIsListedWhileClaimsHoldItsDevices(t *testing.T) {
	enforced := isReady()
	enforced.Type = v1alpha1.ConditionEnforced
	e := v1alpha1.Entitlement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shared", Name: "legal"}, Spec: v1alpha1.EntitlementSpec{Tenant: "legal", TenantClusterRef: v1alpha1.LocalReference{Name: "gpus"}},
		Status: v1alpha1.EntitlementStatus{
			Conditions: []metav1.Condition{enforced},
			Holdings: []v1alpha1.DeviceHolding{
				{Claim: "a", Devices: map[string]int32{"legal-a100": 2, "legal-h100": 1}}, {Claim: "b", Devices: map[string]int32{"legal-a100": 1, "gpu.nvidia.com": 4}},
			},
			Classes: []v1alpha1.EntitledClassStatus{{Name: "h100", DeviceClass: "legal-h100", Entitled: 4, Allocated: 1, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue}}}},
		},
	}
	seen := func(e v1alpha1.Entitlement) string {
		var lines []string
		for _, r := range EntitlementRows([]v1alpha1.Entitlement{e}) {
			lines = append(lines, fmt.Sprintf("%s %s %d %s", r.Class, r.Gives, r.Allocated, r.Problem))
		}
		return strings.Join(lines, "\n")
	}
	if got, want := seen(e), " gpu.nvidia.com 4 never given, 4 held\na100 legal-a100 3 taken away, 3 held\nh100 legal-h100 1 "; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	e.Status.Classes = nil
	if got := seen(e); strings.Count(got, "\n") != 2 || !strings.Contains(got, "h100 legal-h100 1 taken away, 1 held") {
		t.Errorf("without a class:\n%s", got)
	}
	e.Status.Conditions[0].Status, e.Status.Conditions[0].Reason, e.Status.Conditions[0].Message = metav1.ConditionFalse, v1alpha1.ReasonNameTaken, "NOT ENFORCED"
	if got := seen(e); !strings.Contains(got, "a100 legal-a100 3 taken away, 3 held; NameTaken: NOT ENFORCED") {
		t.Errorf("not enforced:\n%s", got)
	}
}
