package v1alpha1_test

import (
	"fmt"
	"slices"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAHostKeepsTheUIDsThatItHadBeforeItWasRestored(t *testing.T) {
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "rack-1", UID: "a"}}
	v1alpha1.Register(host)
	if _, isKept := host.Annotations[v1alpha1.AnnotationFormerly]; isKept || len(v1alpha1.FormerUIDs(host)) > 0 {
		t.Errorf("a new host was another one before: %v", host.Annotations)
	}
	for _, uid := range []types.UID{"b", "c"} {
		host.UID = uid // a backup keeps the annotations
		before := v1alpha1.FormerUIDs(host)
		v1alpha1.Register(host)
		v1alpha1.Register(host)
		if after := v1alpha1.FormerUIDs(host); !slices.Equal(before, after) || v1alpha1.IsRestored(host) {
			t.Errorf("under the uid %s it was %v, and after it was registered %v", uid, before, after)
		}
	}
	if got := v1alpha1.FormerUIDs(host); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("restored twice: %v", got)
	}
	// An older backup is restored.
	host.UID, host.Annotations = "d", map[string]string{v1alpha1.AnnotationRegisteredAs: "metal/rack-1/a"}
	if got := v1alpha1.FormerUIDs(host); !slices.Equal(got, []string{"a"}) {
		t.Errorf("restored and not registered: %v", got)
	}
	host.Name = "rack-2"
	if got := v1alpha1.FormerUIDs(host); len(got) > 0 {
		t.Errorf("a copied manifest makes another server's uids its own: %v", got)
	}
	for i := range 20 {
		v1alpha1.Register(host)
		host.UID = types.UID(fmt.Sprint("u", i))
	}
	if got := v1alpha1.FormerUIDs(host); len(got) != 8 || got[0] != "u18" {
		t.Errorf("restored twenty times: %v", got)
	}
}
