package step

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAnObjectIsCalledByItsKind(t *testing.T) {
	unread := &unstructured.Unstructured{}
	unread.SetKind("ResourceSlice")
	for want, o := range map[string]runtime.Object{
		"NodeType": &v1alpha1.NodeType{}, "BareMetalHost": &metal3.BareMetalHost{}, "Secret": &corev1.Secret{},
		"NodeTypeList": &v1alpha1.NodeTypeList{}, "ResourceSlice": unread,
	} {
		if got := Kind(o); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
