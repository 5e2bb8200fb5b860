package machine

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

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
