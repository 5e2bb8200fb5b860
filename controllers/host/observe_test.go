package host

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
)

func TestABMCAddressThatCannotBeReadSaysWhatIsExpected(t *testing.T) {
	for hasIPMI, want := range map[bool]string{false: "or https://...: ", true: "or ipmi://HOST[:PORT]: "} {
		_, problem := parseAddress("redfish+http://root:hunter2@10.0.0.7", hasIPMI)
		if problem == nil || problem.Reason != "BMCAddressInvalid" || !strings.Contains(problem.Message, want) || strings.Contains(problem.Message, "hunter2") {
			t.Errorf("problem %+v", problem)
		}
	}
}

func TestRebootAnnotationsAreReadAsMetal3Does(t *testing.T) {
	for _, c := range []struct {
		annotations  map[string]string
		any, hard, n bool
	}{
		{map[string]string{"other": ""}, false, false, false},
		{map[string]string{"reboot.metal3.io": ""}, true, false, true},
		{map[string]string{"reboot.metal3.io": `{"mode": "hard"}`}, true, true, true},
		{map[string]string{"reboot.metal3.io/me": `{"mode": "soft"}`}, true, false, false},
		{map[string]string{"reboot.metal3.io/me": `{"mode": "hard"}`, "reboot.metal3.io": "nonsense"}, true, true, true},
		{map[string]string{"reboot.metal3.iox": ""}, false, false, false},
	} {
		facts := hostFacts(&metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}})
		if facts.Reboot != c.any || facts.RebootHard != c.hard || facts.RebootOnce != c.n {
			t.Errorf("%v: %+v", c.annotations, facts)
		}
	}
}

func TestCredentialsThatWereJustRefusedAreNotTriedAgain(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(now), Timeouts: plan.DefaultTimeouts()}
	host := func(age time.Duration) *metal3.BareMetalHost {
		at := metav1.NewTime(now.Add(-age))
		h := &metal3.BareMetalHost{}
		h.Spec.BMC.CredentialsName = "bmc"
		h.Status.LastUpdated = &at
		h.Status.TriedCredentials = metal3.CredentialsStatus{Reference: &corev1.SecretReference{Name: "bmc"}, Version: "1"}
		return h
	}
	refused, silent := &v1alpha1.HostError{Reason: "BMCUnauthorized", Message: "the BMC refuses them"}, &v1alpha1.HostError{Reason: "BMCUnreachable", Message: "no answer"}
	for _, c := range []struct {
		name    string
		host    *metal3.BareMetalHost
		failed  *v1alpha1.HostError
		version string
		refused bool
	}{
		{"the same Secret a moment later", host(time.Minute), refused, "1", true},
		{"the same Secret after a while", host(5 * time.Minute), refused, "1", false},
		{"a changed Secret", host(time.Minute), refused, "2", false},
		{"another failure", host(time.Minute), silent, "1", false},
		{"no failure", host(time.Minute), nil, "1", false},
	} {
		problem := r.recentRefusal(c.host, &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{Error: c.failed}}, c.version)
		if (problem != nil) != c.refused || problem != nil && problem.Message != "the BMC refuses them" {
			t.Errorf("%s: %+v", c.name, problem)
		}
	}
}
