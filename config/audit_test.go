package config

import (
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestTheAuditPolicyLogsWhatBecomesOfDevices asks the API server's own evaluator.
func TestTheAuditPolicyLogsWhatBecomesOfDevices(t *testing.T) {
	loaded, err := policy.LoadPolicyFromFile("audit/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	evaluator := policy.NewPolicyRuleEvaluator(loaded)
	for _, c := range []struct {
		verb, group, resource, subresource string
		want                               auditinternal.Level
	}{
		{"create", "resource.k8s.io", "resourceclaims", "", auditinternal.LevelRequestResponse},
		{"update", "resource.k8s.io", "resourceclaims", "status", auditinternal.LevelRequestResponse},
		{"patch", "resource.k8s.io", "resourceclaims", "status", auditinternal.LevelRequestResponse},
		{"delete", "resource.k8s.io", "resourceclaims", "", auditinternal.LevelRequestResponse},
		{"deletecollection", "resource.k8s.io", "resourceclaims", "", auditinternal.LevelRequestResponse},
		{"create", "resource.k8s.io", "resourceclaimtemplates", "", auditinternal.LevelRequestResponse},
		{"patch", "resource.k8s.io", "deviceclasses", "", auditinternal.LevelRequestResponse},
		{"create", "", "pods", "", auditinternal.LevelMetadata},
		{"create", "", "pods", "binding", auditinternal.LevelRequest},
		{"patch", "", "resourcequotas", "", auditinternal.LevelMetadata},
		{"delete", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", auditinternal.LevelMetadata},
		{"list", "resource.k8s.io", "resourceclaims", "", auditinternal.LevelNone},
		{"create", "", "secrets", "", auditinternal.LevelNone},
		{"update", "resource.k8s.io", "resourceslices", "", auditinternal.LevelNone},
	} {
		got := evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: "somebody"}, Verb: c.verb, APIGroup: c.group, APIVersion: "v1", Resource: c.resource, Subresource: c.subresource, Namespace: "legal-ai", ResourceRequest: true,
		})
		if got.Level != c.want {
			t.Errorf("%s %s/%s/%s is logged at level %s, expected %s", c.verb, c.group, c.resource, c.subresource, got.Level, c.want)
		}
	}
}
