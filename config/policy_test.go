package config

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestThePoliciesKnowTheManagerByItsServiceAccount: with another name in a policy, the manager could not power off or release a host.
func TestThePoliciesKnowTheManagerByItsServiceAccount(t *testing.T) {
	objects := installation(t)
	account := the[*corev1.ServiceAccount](t, objects, "ingot-manager")
	want := fmt.Sprintf("system:serviceaccount:%s:%s", account.Namespace, account.Name)
	named := regexp.MustCompile(`system:serviceaccount:[a-z0-9:-]+`)
	found := 0
	for _, o := range objects {
		policy, ok := o.(*admissionregistrationv1.ValidatingAdmissionPolicy)
		if !ok {
			continue
		}
		for _, c := range policy.Spec.MatchConditions {
			for _, user := range named.FindAllString(c.Expression, -1) {
				if strings.HasPrefix(user, "system:serviceaccount:kube-system:") {
					continue // Kubernetes' own controllers
				}
				found++
				if user != want {
					t.Errorf("policy %s spares %s, the manager is %s", policy.Name, user, want)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no policy names the manager")
	}
}
