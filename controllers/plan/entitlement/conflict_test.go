package entitlement

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// TestWhoIsRefusedHoldsNothingAgainstOthers has chains of Entitlements, the oldest first, each by its namespaces.
func TestWhoIsRefusedHoldsNothingAgainstOthers(t *testing.T) {
	for _, c := range []struct {
		name       string
		namespaces []string
		// want is which older one each of them loses to; -1: it holds.
		want []int
	}{
		{"nothing in common", []string{"a", "b", "c"}, []int{-1, -1, -1}},
		{"the middle one reaches both ways", []string{"a", "a b", "b"}, []int{-1, 0, -1}},
		{"four in a row", []string{"a", "a b", "b c", "c"}, []int{-1, 0, -1, 2}},
		{"five in a row", []string{"a", "a b", "b c", "c d", "d"}, []int{-1, 0, -1, 2, -1}},
		{"one that reaches all loses to the oldest alone", []string{"a", "a b c d", "b", "c", "d"}, []int{-1, 0, -1, -1, -1}},
		{"the oldest one reaches all", []string{"a b c", "a", "b", "c"}, []int{-1, 0, 0, 0}},
		{"two that are refused do not refuse a third", []string{"a", "a b", "a b", "b"}, []int{-1, 0, 0, -1}},
	} {
		var all []v1alpha1.Entitlement
		for i, names := range c.namespaces {
			e := v1alpha1.Entitlement{Spec: v1alpha1.EntitlementSpec{Tenant: fmt.Sprint("t", i), Namespaces: v1alpha1.TenantNamespaces{Names: strings.Fields(names)}}}
			e.Name, e.UID, e.CreationTimestamp.Time = fmt.Sprint(i), types.UID(fmt.Sprint("uid-", i)), time.Unix(int64(i), 0)
			all = append(all, e)
		}
		for seed := range uint64(8) {
			shuffled := append([]v1alpha1.Entitlement(nil), all...)
			rand.New(rand.NewPCG(seed, 7)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			for i := range all {
				got := Conflict(&all[i], shuffled, nil)
				if c.want[i] < 0 && got != "" || c.want[i] >= 0 && !strings.HasPrefix(got, fmt.Sprintf("Entitlement /%d, which is older,", c.want[i])) {
					t.Errorf("%s, seed %d: %d has %q, and loses to %d", c.name, seed, i, got, c.want[i])
				}
			}
		}
	}
}

// BenchmarkConflict is one look at the youngest of 200 tenants of a cluster that have their namespaces by label.
func BenchmarkConflict(b *testing.B) {
	var all []v1alpha1.Entitlement
	var namespaces []Namespace
	for i := range 200 {
		team := map[string]string{"team": fmt.Sprint(i)}
		e := v1alpha1.Entitlement{Spec: v1alpha1.EntitlementSpec{Tenant: fmt.Sprint("t", i), Namespaces: v1alpha1.TenantNamespaces{Selector: &metav1.LabelSelector{MatchLabels: team}}}}
		e.UID, e.CreationTimestamp.Time = types.UID(fmt.Sprint(i)), time.Unix(int64(i), 0)
		all = append(all, e)
		for j := range 3 {
			name := fmt.Sprintf("n%d-%d", i, j)
			namespaces = append(namespaces, Namespace{Name: name, Labels: map[string]string{"team": team["team"], corev1.LabelMetadataName: name}})
		}
	}
	for b.Loop() {
		if Conflict(&all[199], all, namespaces) != "" {
			b.Fatal("they have nothing in common")
		}
	}
}
