package fleet

import (
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
	rows := EntitlementRows(all)
	var lines []string
	for _, line := range entitlementTable(rows, now)[1:] {
		lines = append(lines, strings.Join(line, "|"))
	}
	want := []string{
		"shared|a|gpus|empty|t-empty|4|2|1|8|2 Pod QuotaExceeded 12m, 1 ResourceClaim Unused 0s|SelectsNothing: no device matches",
		"shared|new||-|-|0|0|0|0|-|no manager has looked at it yet",
		"shared|z|gpus|any|t-any|4|2|1|8|-|NameTaken: NOT ENFORCED: taken",
		"shared|a|gpus|good|t-good|4|2|1|8|-|-",
		"shared|b|gpus|-|-|0|0|0|0|-|-",
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
