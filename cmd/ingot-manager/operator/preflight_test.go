package operator

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// apiServer serves the discovery of the kinds given: group version -> kinds.
func apiServer(t *testing.T, served map[string][]string) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := strings.TrimPrefix(r.URL.Path, "/apis/")
		answer := any(map[string]string{"gitVersion": "v1.37.0"})
		if r.URL.Path != "/version" {
			kinds, ok := served[version]
			if !ok {
				http.NotFound(w, r)
				return
			}
			list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version}
			for _, kind := range kinds {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind})
			}
			answer = list
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestMissingKindsAreNamedWithWhatToApply(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	ours := kindsOf(scheme, v1alpha1.GroupVersion)
	if len(ours) != 12 {
		t.Errorf("Ingot's kinds are %v, want twelve", ours)
	}
	for _, c := range []struct {
		name   string
		served map[string][]string
		says   []string
	}{
		{"nothing is missing", map[string][]string{"ingot.dev/v1alpha1": ours, "metal3.io/v1alpha1": {"BareMetalHost"}}, nil},
		{"an older installation", map[string][]string{"ingot.dev/v1alpha1": ours[1:], "metal3.io/v1alpha1": {"BareMetalHost"}}, []string{
			"does not serve ingot.dev/v1alpha1 Entitlement: apply the CRDs: kubectl apply --server-side -k config/crd",
		}},
		{"no CRD at all", nil, []string{
			"does not serve ingot.dev/v1alpha1 Entitlement, HostRecord, Machine, NodePool, NodeProvider, NodeQuota, NodeType, NodeTypeRendering, NodeTypeRevision, OSImage, Rollout, TenantCluster: ",
			"does not serve metal3.io/v1alpha1 BareMetalHost: install the baremetal-operator",
		}},
	} {
		err := preflight(apiServer(t, c.served), scheme)
		if (err == nil) != (c.says == nil) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, says := range c.says {
			if err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s: got %q, want %q", c.name, err, says)
			}
		}
	}
}
