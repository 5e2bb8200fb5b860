package connect

import (
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
