package machine

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
)

// TestDocumentsAreRenderedAgainWhenWhatTheyAreMadeOfHasChanged changes one thing after the other, and then what no document has.
func TestDocumentsAreRenderedAgainWhenWhatTheyAreMadeOfHasChanged(t *testing.T) {
	node := documents.Node{
		Machine: &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "m"}}, NodeType: &v1alpha1.NodeType{}, Revision: &v1alpha1.NodeTypeRevision{},
		Image: &v1alpha1.OSImage{}, Host: &metal3.BareMetalHost{}, Tenant: &v1alpha1.TenantCluster{},
	}
	rendering := &v1alpha1.NodeTypeRendering{}
	known := map[string]string{madeOf(node, rendering): "as it was"}
	for _, c := range []struct {
		what   string
		change func()
	}{
		{"Machine", func() { node.Machine.Generation++ }},
		{"attempt", func() { node.Machine.Status.Attempt++ }},
		{"providerID", func() { node.Machine.Status.ProviderID = "Cluster" }},
		{"NodeType", func() { node.NodeType.Generation++ }},
		{"revision", func() { node.Revision.UID = "r" }},
		{"rendering", func() { rendering.UID = "r" }},
		{"image", func() { node.Image.Generation++ }},
		{"host", func() { node.Host.UID = "h" }},
		{"MAC address", func() { node.Host.Spec.BootMACAddress = "0c:42:a1:00:00:01" }},
		{"label of the host", func() { node.Host.Labels = map[string]string{"zone": "a"} }},
		{"annotation of the host", func() { node.Host.Annotations = map[string]string{"network": "a"} }},
		{"TenantCluster", func() { node.Tenant.ResourceVersion = "2" }},
		{"attempt of the Secret", func() { node.SecretAttempt++ }},
	} {
		c.change()
		if before, isKnown := known[madeOf(node, rendering)]; isKnown {
			t.Errorf("after another %s the documents count as those of %s", c.what, before)
		}
		known[madeOf(node, rendering)] = c.what
	}
	node.Host.Annotations[v1alpha1.AnnotationInstallation] = "{}"
	node.Host.Generation++
	node.Machine.ResourceVersion, node.Host.ResourceVersion, node.NodeType.ResourceVersion = "9", "9", "9"
	if _, isKnown := known[madeOf(node, rendering)]; !isKnown {
		t.Error("what no document has makes other documents")
	}
}
