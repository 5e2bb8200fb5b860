package host

import (
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestAFindingIsAConditionAndOneEvent(t *testing.T) {
	message := "an agent at 10.0.0.7 has registered for boot 1, and another program at 10.0.0.9 used the token of that boot"
	f := facts(metal3.StateProvisioning, hardware.PowerOn).attempted(2, hardware.OpInstall, hardware.AttemptRunning, "")
	f.Record.Attempt = &v1alpha1.HostAttempt{Number: 2, State: "Running", Step: "Writing", Agent: &v1alpha1.HostAgent{}}
	plan := func() (*metav1.Condition, int) {
		d := Plan(f)
		told := 0
		for _, e := range d.Events {
			if e.Reason == string(v1alpha1.FindingAnotherAgent) || e.Reason == string(v1alpha1.FindingServerDiffers) {
				told++
			}
		}
		f.Record = d.Record
		return meta.FindStatusCondition(d.Record.Conditions, v1alpha1.ConditionAgentUndisputed), told
	}
	if c, told := plan(); c != nil || told > 0 {
		t.Errorf("without a finding: %+v, %d events", c, told)
	}
	for count := int32(1); count < 4; count++ {
		f.Record.Attempt.Findings = []v1alpha1.HostFinding{{Reason: v1alpha1.FindingAnotherAgent, Message: message, Count: count, At: at(0)}}
		c, told := plan()
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "AnotherAgent" || !strings.Contains(c.Message, "10.0.0.7") || !strings.Contains(c.Message, "10.0.0.9") {
			t.Errorf("condition %+v", c)
		}
		if first := count == 1; first != (told == 1) || told > 1 {
			t.Errorf("at count %d: %d events", count, told)
		}
	}
	f.Record.Attempt.Findings = append(f.Record.Attempt.Findings, v1alpha1.HostFinding{Reason: v1alpha1.FindingServerDiffers, Message: "serial number", Count: 1, At: at(0)})
	if c, told := plan(); told != 1 || !strings.Contains(c.Message, "; ServerDiffers: serial number") {
		t.Errorf("a second kind: %d events, %+v", told, c)
	}
	f = f.attempted(3, hardware.OpInstall, hardware.AttemptRunning, "")
	f.Record.Attempt = &v1alpha1.HostAttempt{Number: 3, State: "Running", Step: "Booting"}
	if c, _ := plan(); c.Status != metav1.ConditionFalse {
		t.Errorf("before an agent has registered: %+v", c)
	}
	f.Record.Attempt.Agent = &v1alpha1.HostAgent{}
	if c, told := plan(); c.Status != metav1.ConditionTrue || told > 0 {
		t.Errorf("an attempt without a finding: %+v, %d events", c, told)
	}
}
