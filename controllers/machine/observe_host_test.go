package machine

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestTheReasonOfAHostsErrorIsRecordedAndNeverReadFromText(t *testing.T) {
	host := &metal3.BareMetalHost{Status: metal3.BareMetalHostStatus{ErrorType: metal3.PowerManagementError, ErrorMessage: "BMCUnreachable: no answer"}}
	record := &v1alpha1.HostRecord{}
	for name, c := range map[string]struct {
		record *v1alpha1.HostRecord
		failed *v1alpha1.HostError
		reason string
	}{
		"a host that Ingot serves":   {record, &v1alpha1.HostError{Reason: "PowerOffIgnored"}, "PowerOffIgnored"},
		"one whose error is newer":   {record, nil, ""},
		"a baremetal-operator's one": {nil, nil, ""},
	} {
		record.Status.Error = c.failed
		if got := lifecycleHost(host, c.record, "m1"); got.ErrorReason != c.reason {
			t.Errorf("%s: reason %q, expected %q", name, got.ErrorReason, c.reason)
		}
	}
}

// TestTheConditionsSayWhatWasObserved has a BMC that tells nothing of its health, so that the condition Healthy stays what it was at first.
func TestTheConditionsSayWhatWasObserved(t *testing.T) {
	condition := func(kind string, generation int64) any {
		return map[string]any{"type": kind, "status": "True", "observedGeneration": generation}
	}
	host := &unstructured.Unstructured{Object: map[string]any{}}
	if got, manageable := readConditions(host); got != nil || manageable != nil {
		t.Errorf("without conditions: %v, %v", got, manageable)
	}
	conditions := []any{condition("Provisioned", 7), condition("Healthy", 1), condition("Progressing", 7)}
	if err := unstructured.SetNestedSlice(host.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	if got, manageable := readConditions(host); got == nil || *got != 7 || manageable != nil {
		t.Errorf("observed: %v, expected 7; manageable: %v", got, manageable)
	}
	for status, want := range map[string]bool{"True": true, "False": false, "Unknown": false, "": false} {
		known := map[string]any{"type": conditionManageable, "status": status, "reason": "OfALaterRelease", "observedGeneration": int64(5)}
		if err := unstructured.SetNestedSlice(host.Object, append(conditions, known), "status", "conditions"); err != nil {
			t.Fatal(err)
		}
		if got, manageable := readConditions(host); *got != 5 || manageable == nil || *manageable != want {
			t.Errorf("Manageable is %q: %d is observed, expected 5; manageable: %v", status, *got, manageable)
		}
	}
}
