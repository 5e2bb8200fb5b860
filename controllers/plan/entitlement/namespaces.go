package entitlement

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// NoNamespace says why there is no namespace in which a claim can be tried, and what to do; empty: there is one. found are the tenant's namespaces that exist,
// and isTerminating those of them that are being deleted.
func NoNamespace(n v1alpha1.TenantNamespaces, found []string, isTerminating map[string]bool) string {
	const then = ". Until then nothing shows whether the shared cluster refuses anything: what is to refuse it is there, and is tried as soon as there is a namespace"
	switch {
	case len(found) == 0 && n.Selector != nil:
		return fmt.Sprintf("no namespace of the shared cluster has the labels %s: label one, or correct spec.namespaces.selector%s", metav1.FormatLabelSelector(n.Selector), then)
	case len(found) == 0:
		return fmt.Sprintf("no namespace of the shared cluster is named %s: create it, or correct spec.namespaces.names%s", strings.Join(n.Names, " or "), then)
	case !slices.ContainsFunc(found, func(name string) bool { return !isTerminating[name] }):
		return fmt.Sprintf("every namespace of the tenant is being deleted: %s%s", strings.Join(found, ", "), then)
	}
	return ""
}

// Missing returns the namespaces that are named and do not exist, sorted.
func Missing(n v1alpha1.TenantNamespaces, found []string) []string {
	out := slices.DeleteFunc(slices.Clone(n.Names), func(name string) bool { return slices.Contains(found, name) })
	slices.Sort(out)
	return out
}
