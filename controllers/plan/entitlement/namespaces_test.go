package entitlement

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAnEntitlementWithoutANamespaceSaysWhatToCorrect(t *testing.T) {
	named := v1alpha1.TenantNamespaces{Names: []string{"teamx", "team-a"}}
	labelled := v1alpha1.TenantNamespaces{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}}
	for _, c := range []struct {
		name       string
		namespaces v1alpha1.TenantNamespaces
		found      []string
		leaving    map[string]bool
		want       string
	}{
		{"a name that is misspelled", named, nil, nil, "no namespace of the shared cluster is named teamx or team-a: create it, or correct spec.namespaces.names"},
		{"labels that nothing has", labelled, nil, nil, "no namespace of the shared cluster has the labels team=x: label one, or correct spec.namespaces.selector"},
		{"all are being deleted", named, []string{"team-a"}, map[string]bool{"team-a": true}, "every namespace of the tenant is being deleted: team-a"},
		{"one of two is there", named, []string{"team-a"}, nil, ""},
		{"one of two stays", named, []string{"team-a", "teamx"}, map[string]bool{"team-a": true}, ""},
	} {
		if got := NoNamespace(c.namespaces, c.found, c.leaving); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := Missing(named, []string{"team-a"}); !slices.Equal(got, []string{"teamx"}) || len(Missing(labelled, nil)) > 0 {
		t.Errorf("%v", got)
	}
}
