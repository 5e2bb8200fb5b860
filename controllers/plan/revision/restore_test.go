package revision

import (
	"errors"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestANodeTypeIsSetBackToARevision(t *testing.T) {
	image := func(name string) *v1alpha1.OSImage {
		return &v1alpha1.OSImage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.OSImageSpec{Format: v1alpha1.FormatRaw}, Status: v1alpha1.OSImageStatus{Checksum: "sha256:" + name}}
	}
	provider := &v1alpha1.NodeProvider{Spec: v1alpha1.NodeProviderSpec{SSHKeys: []string{"of the hall"}, UserData: "#cloud-config\n"}}
	nodeType := &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: "h100"}, Spec: v1alpha1.NodeTypeSpec{
		OSImageRef: v1alpha1.LocalReference{Name: "one"}, SSHKeys: []string{"of the team"}, UserData: "#cloud-config\npackages: [a]\n", Properties: map[string]string{"vlan": "120"}, DisplayName: "first",
	}}
	inputs := Inputs{NodeType: nodeType, Provider: provider, Image: image("one")}
	spec, err := Build(inputs)
	if err != nil {
		t.Fatal(err)
	}
	own, err := OwnDigest(inputs)
	if err != nil {
		t.Fatal(err)
	}
	first := &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationInputs: own}}, Spec: spec}
	changed := nodeType.DeepCopy()
	changed.Spec.OSImageRef.Name, changed.Spec.SSHKeys, changed.Spec.UserData, changed.Spec.DisplayName = "two", nil, "", "second"
	changed.Spec.Properties = map[string]string{"vlan": "130", "new": "x"}
	changed.Spec.GPU = &v1alpha1.GPUSpec{Model: "H100-SXM5-80GB"}

	got, err := Restore(Inputs{NodeType: changed, Provider: provider, Image: image("one")}, first)
	if err != nil {
		t.Fatal(err)
	}
	if got.OSImageRef.Name != "one" || got.GPU != nil || got.UserData != nodeType.Spec.UserData || !maps.Equal(got.Properties, nodeType.Spec.Properties) || len(got.SSHKeys) != 1 || got.SSHKeys[0] != "of the team" {
		t.Errorf("set back to %+v", got)
	}
	if got.DisplayName != "second" {
		t.Error("what no revision holds was changed")
	}

	provider.Spec.UserData = "#cloud-config\nruncmd: [true]\n"
	if _, err := Restore(Inputs{NodeType: changed, Provider: provider, Image: image("one")}, first); err != nil {
		t.Errorf("the provider's own part changed: %v", err)
	}
	provider.Spec.SSHKeys = append(provider.Spec.SSHKeys, "of the team")
	var unrestorable *UnrestorableError
	if _, err := Restore(Inputs{NodeType: changed, Provider: provider, Image: image("one")}, first); !errors.As(err, &unrestorable) || !strings.Contains(err.Error(), "compare sshKeys and the checksum of OSImage one") {
		t.Errorf("the team's key is the provider's now: %v", err)
	}
}

func TestARevisionWithoutLayersIsRestored(t *testing.T) {
	in := inputs()
	in.NodeType.Spec.UserData = ""
	spec, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	own, err := OwnDigest(in)
	if err != nil {
		t.Fatal(err)
	}
	in.NodeType.Spec.UserData, in.NodeType.Spec.Properties = "#cloud-config\n", map[string]string{"vlan": "120"}
	got, err := Restore(in, &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationInputs: own}}, Spec: spec})
	if err != nil || got.UserData != "" || got.Properties != nil {
		t.Errorf("set back to user data %q and properties %v (%v)", got.UserData, got.Properties, err)
	}
}
