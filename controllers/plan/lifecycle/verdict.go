package lifecycle

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// waitingCheck is the first check that decides the verdict, in a few words: nvidia.com/gpu: 7 of 8.
func (s situation) waitingCheck() string {
	if v := s.Machine.Status.Verdict; v != nil && s.HasNodeOfThisAttempt() && v.NodeUID == s.Node.UID {
		for _, c := range v.Checks {
			if c.Result == v.Result && c.Result != v1alpha1.CheckPass {
				return strings.TrimPrefix(c.Name, "resource/") + ": " + compared(c)
			}
		}
	}
	return ""
}

// compared says what was seen and what was expected: numbers as a part of the whole.
func compared(c v1alpha1.Check) string {
	if c.Observed == "" {
		return "nothing seen, expected " + c.Expected
	}
	if _, err := resource.ParseQuantity(c.Observed); err == nil {
		return c.Observed + " of " + c.Expected
	}
	return c.Observed + ", expected " + c.Expected
}

// verdictProblem is why the Machine is not Ready once it had a Node.
func (s situation) verdictProblem() (reason, message string) {
	v, m := s.Machine.Status.Verdict, s.Machine
	switch {
	case !s.hasHost():
		return v1alpha1.ReasonHostLost, "host " + s.hostName() + " is no longer this Machine's"
	case !s.Tenant.Reachable:
		return v1alpha1.ReasonWaitingForTenant, tenantTrouble(s.Facts)
	case !s.Node.Found:
		return v1alpha1.ReasonNodeLost, "Node " + m.Name + " was deleted in the tenant's cluster: restart kubelet on it, and it registers again"
	case !s.HasNodeOfThisAttempt():
		return v1alpha1.ReasonNodeConflict, s.conflict()
	case !s.HasVerdictOfNode():
		return v1alpha1.ReasonChecksWaiting, "Node " + m.Name + " has not been judged yet"
	case v.BootID != s.Node.BootID:
		return v1alpha1.ReasonNodeRebooted, "Node " + m.Name + " booted since it was judged"
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionValidated); c != nil && c.Status != metav1.ConditionTrue {
		return c.Reason, c.Message
	} else if v.Result != v1alpha1.CheckPass {
		return v1alpha1.ReasonChecksWaiting, "a check does not pass: " + s.waitingCheck()
	}
	return v1alpha1.ReasonSettling, "every check passes; the gate is lifted when that lasted for validation.settle"
}
