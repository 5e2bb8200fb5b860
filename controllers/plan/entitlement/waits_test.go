package entitlement

import (
	"strings"
	"testing"
)

// TestTheReasonOfARefusalIsKept has the messages of kube-controller-manager 1.37.
func TestTheReasonOfARefusalIsKept(t *testing.T) {
	const class = "department-of-radiology-h100-whole.deviceclass.resource.k8s.io/devices"
	quota := "exceeded quota: ingot-department-of-radiology, requested: " + class + "=1, used: " + class + "=2, limited: " + class + "=2"
	for _, c := range []struct{ name, message, want string }{
		{"over the quota", `PodResourceClaim gpu: create ResourceClaim : resourceclaims.resource.k8s.io "trainer-7d9c4b6f88-x2v9q-gpu-8zk4m" is forbidden: ` + quota, quota},
		{"the policy", `PodResourceClaim gpu: create ResourceClaim : resourceclaims.resource.k8s.io "a-gpu-1" is forbidden: ValidatingAdmissionPolicy 'ingot-claims-a' denied request`,
			`resourceclaims.resource.k8s.io "a-gpu-1" is forbidden: ValidatingAdmissionPolicy 'ingot-claims-a' denied request`},
		{"without its template", `PodResourceClaim gpu: resource claim template "gpu": not found`, `resource claim template "gpu": not found`},
		{"of another version", `cannot make the claim: PodResourceClaim gpu: it fails`, `cannot make the claim: PodResourceClaim gpu: it fails`},
	} {
		if got := RefusalText(c.message); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	pod := Pod{Namespace: "radiology", Name: "a", LacksClaim: true}
	waits := Waits(nil, []Pod{pod}, Refusals{"radiology/a": RefusalText(quota)})
	if len(waits) != 1 || !strings.HasSuffix(waits[0].Message, "limited: "+class+"=2") {
		t.Errorf("%+v", waits)
	}
}
