package entitlement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Namespace is a namespace of the shared cluster.
type Namespace struct {
	Name   string
	Labels map[string]string
	// IsTerminating: it is being deleted, and takes no new objects.
	IsTerminating bool
}

// NamespacesOf returns the names of the namespaces of a tenant that exist, sorted.
func NamespacesOf(n v1alpha1.TenantNamespaces, all []Namespace) ([]string, error) {
	if n.Selector == nil {
		var out []string
		for i := range all {
			if slices.Contains(n.Names, all[i].Name) {
				out = append(out, all[i].Name)
			}
		}
		slices.Sort(out)
		return out, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(NamespaceSelector(n))
	if err != nil {
		return nil, fmt.Errorf("namespaces.selector: %w", err)
	}
	var out []string
	for _, namespace := range all {
		if selector.Matches(labels.Merge(namespace.Labels, labels.Set{corev1.LabelMetadataName: namespace.Name})) {
			out = append(out, namespace.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Conflict says which older Entitlement of the same cluster an Entitlement contradicts; empty: none. Of two, the older one holds: a tenant that runs
// must not lose its devices because somebody adds an Entitlement.
func Conflict(e *v1alpha1.Entitlement, others []v1alpha1.Entitlement, all []Namespace) string {
	for i := range others {
		other := &others[i]
		if other.UID == e.UID || !isOlder(other, e) {
			continue
		}
		if what := contradiction(e, other, all); what != "" {
			return fmt.Sprintf("Entitlement %s/%s, which is older, %s", other.Namespace, other.Name, what)
		}
	}
	return ""
}

func isOlder(a, b *v1alpha1.Entitlement) bool {
	if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
		return c < 0
	}
	return a.UID < b.UID
}

func contradiction(e, other *v1alpha1.Entitlement, all []Namespace) string {
	if e.Spec.Tenant == other.Spec.Tenant {
		return fmt.Sprintf("is of tenant %s too: add its classes and namespaces there", e.Spec.Tenant)
	}
	for _, c := range e.Spec.Classes {
		for _, o := range other.Spec.Classes {
			if name := DeviceClassName(e, c); name == DeviceClassName(other, o) {
				return fmt.Sprintf("makes a DeviceClass %s too, from its class %s: rename class %s", name, o.Name, c.Name)
			}
		}
	}
	if both := shared(e.Spec.Namespaces, other.Spec.Namespaces, all); len(both) > 0 {
		return fmt.Sprintf("has namespace %s too, and a namespace has one tenant: change spec.namespaces of one of them", strings.Join(both, ", "))
	}
	return ""
}

// shared returns the namespaces that are in both, also those that are named and do not exist yet.
func shared(a, b v1alpha1.TenantNamespaces, all []Namespace) []string {
	if a.Selector == nil && b.Selector == nil {
		return slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(a.Names), func(n string) bool { return !slices.Contains(b.Names, n) })))
	}
	for _, name := range append(slices.Clone(a.Names), b.Names...) {
		if !slices.ContainsFunc(all, func(n Namespace) bool { return n.Name == name }) {
			all = append(slices.Clone(all), Namespace{Name: name})
		}
	}
	first, err := NamespacesOf(a, all)
	if err != nil {
		return nil // The API server of the management cluster refuses such a selector, and so does the shared one.
	}
	second, err := NamespacesOf(b, all)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(first, func(n string) bool { return !slices.Contains(second, n) })
}
