package entitlement

import (
	"cmp"
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
	for i := range all {
		if selector.Matches(labelsOf(&all[i])) {
			out = append(out, all[i].Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// labelsOf returns the labels of a namespace with that of its name, which the API server gives every namespace. Without the copy that is spared: most of the time
// in which the selectors of 200 tenants are tried goes into copies.
func labelsOf(n *Namespace) labels.Set {
	if n.Labels[corev1.LabelMetadataName] == n.Name {
		return n.Labels
	}
	return labels.Merge(n.Labels, labels.Set{corev1.LabelMetadataName: n.Name})
}

// Conflict says which older Entitlement of the same cluster an Entitlement contradicts; empty: none. Of two, the older one holds: a tenant that runs
// must not lose its devices because somebody adds an Entitlement. One that is itself refused holds nothing against others. Without that: a selector that was made
// too wide loses to an older Entitlement, and keeps every younger one from fencing its own namespace.
func Conflict(e *v1alpha1.Entitlement, others []v1alpha1.Entitlement, all []Namespace) string {
	older := make([]*v1alpha1.Entitlement, 0, len(others))
	for i := range others {
		if other := &others[i]; other.UID != e.UID && byAge(other, e) < 0 {
			older = append(older, other)
		}
	}
	slices.SortFunc(older, byAge)
	h := holders{all: all, universe: universe(all, others), of: map[claimed][]*v1alpha1.Entitlement{}}
	for _, other := range older {
		claims := h.claims(other)
		if h.refusal(other, claims) != "" {
			continue
		}
		for _, c := range claims {
			h.of[c] = append(h.of[c], other)
		}
	}
	return h.refusal(e, h.claims(e))
}

// holders are the Entitlements that hold, by what they claim. Without that order: each of 200 tenants is compared with every other one, pair by pair.
type holders struct {
	// all are the namespaces that exist, and universe those and all that are named.
	all, universe []Namespace
	of            map[claimed][]*v1alpha1.Entitlement
}

// claimed is a tenant, a DeviceClass or a namespace that an Entitlement has.
type claimed struct{ kind, name string }

// claims returns what an Entitlement has, or may have.
func (h *holders) claims(e *v1alpha1.Entitlement) []claimed {
	out := []claimed{{"tenant", e.Spec.Tenant}}
	for _, c := range e.Spec.Classes {
		out = append(out, claimed{"class", DeviceClassName(e, c)})
	}
	names := e.Spec.Namespaces.Names
	if e.Spec.Namespaces.Selector != nil {
		// The API server of the management cluster refuses a selector that cannot be read, and so does the shared one.
		names, _ = NamespacesOf(e.Spec.Namespaces, h.universe)
	}
	for _, name := range names {
		out = append(out, claimed{"namespace", name})
	}
	return out
}

// refusal says which of those that hold an Entitlement with these claims contradicts, the oldest one; empty: none.
func (h *holders) refusal(e *v1alpha1.Entitlement, claims []claimed) string {
	var near []*v1alpha1.Entitlement
	for _, c := range claims {
		near = append(near, h.of[c]...)
	}
	slices.SortFunc(near, byAge)
	for _, other := range slices.Compact(near) {
		if what := contradiction(e, other, h.all); what != "" {
			return fmt.Sprintf("Entitlement %s/%s, which is older, %s", other.Namespace, other.Name, what)
		}
	}
	return ""
}

// universe returns the namespaces that exist, and those that Entitlements name.
func universe(all []Namespace, entitlements []v1alpha1.Entitlement) []Namespace {
	out := slices.Clone(all)
	isKnown := make(map[string]bool, len(all))
	for i := range all {
		isKnown[all[i].Name] = true
	}
	for i := range entitlements {
		for _, name := range entitlements[i].Spec.Namespaces.Names {
			if !isKnown[name] {
				isKnown[name] = true
				out = append(out, Namespace{Name: name})
			}
		}
	}
	return out
}

func byAge(a, b *v1alpha1.Entitlement) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
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
