package connect

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTwoNamespacesForOneMachineAreRefused(t *testing.T) {
	_, err := FindMachine(t.Context(), nil, "other", "research/training")
	if err == nil || !strings.Contains(err.Error(), "research/training is in namespace research, and -n says other") {
		t.Errorf("%v", err)
	}
}

func TestTheNameOfAHostLeadsToItsMachine(t *testing.T) {
	host := func(name string, ref *corev1.ObjectReference) metal3.BareMetalHost {
		return metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: name}, Spec: metal3.BareMetalHostSpec{ConsumerRef: ref}}
	}
	hosts := []metal3.BareMetalHost{
		host("a", &corev1.ObjectReference{APIVersion: "ingot.dev/v1alpha1", Kind: "Machine", Namespace: "research", Name: "x"}), host("b", nil),
		host("c", &corev1.ObjectReference{Kind: "Metal3Machine", Namespace: "capi", Name: "y"}),
	}
	for name, want := range map[string]string{
		"a": "a is a host; Machine research/x has it", "b": "b is a host, and no Machine has it: ingot hosts shows it",
		"c": "c is a host; Metal3Machine capi/y has it", "d": "",
	} {
		if got := hostHint(hosts, name); got != want {
			t.Errorf("%s: %q, expected %q", name, got, want)
		}
	}
}

func TestWhatIsWrongWithTheWayToTheClusterIsSaid(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	gone := httptest.NewServer(nil)
	gone.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: '" + gone.URL + "'}}], users: [{name: a, user: {}}]}"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kubeconfig string
		args       []string
		says       string
	}{
		"no kubeconfig":   {"", nil, "no kubeconfig is found: give --kubeconfig"},
		"another context": {file, []string{"--context", "b"}, `context "b" does not exist: look at --kubeconfig, KUBECONFIG and --context`},
		"no server":       {file, nil, "the management cluster at " + gone.URL + " does not answer: dial tcp"},
	} {
		if _, stderr, err := connectWith(t, c.kubeconfig, c.args...); err == nil || !strings.Contains(err.Error(), c.says) || stderr != "" {
			t.Errorf("%s: %v, %q", name, err, stderr)
		}
	}
}
