package nodetype

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/test/management"
)

// replaceTaintKeyRules sets the rules of spec.gate.taintKey in the installed definition of NodeTypes, and returns those that it had.
func replaceTaintKeyRules(t *testing.T, rules any) (before any) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: "nodetypes.ingot.dev"}, crd); err != nil {
		t.Fatal(err)
	}
	field := crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	for _, name := range []string{"spec", "gate", "taintKey"} {
		field = field["properties"].(map[string]any)[name].(map[string]any)
	}
	before, field["x-kubernetes-validations"] = field["x-kubernetes-validations"], rules
	if err := server.Client.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	return before
}

func TestANodeTypeWithAManagedGateKeyStaysUsableAndSaysSo(t *testing.T) {
	managed := nodeType("gatekey-old", "none", "none")
	managed.UID, managed.Spec.Gate.TaintKey = "", "nvidia.com/gpu"
	if err := server.Client.Create(t.Context(), managed.DeepCopy()); !apierrors.IsInvalid(err) {
		t.Fatalf("a new NodeType with the key: %v", err)
	}
	// The definition of an earlier version accepted the key.
	rules := replaceTaintKeyRules(t, []any{})
	management.Eventually(t, "the earlier definition accepts the key", func() bool { return server.Client.Create(t.Context(), managed.DeepCopy()) == nil })
	replaceTaintKeyRules(t, rules)
	management.Eventually(t, "the definition refuses the key again", func() bool {
		other := managed.DeepCopy()
		other.Name = "gatekey-new"
		return apierrors.IsInvalid(server.Client.Create(t.Context(), other, client.DryRunAll))
	})
	runWith(t, presentation.Resolve)
	stored := &v1alpha1.NodeType{}
	management.Eventually(t, "the NodeType says that its key is managed", func() bool {
		if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(managed), stored); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionGateKeyUnmanaged)
		return c != nil && c.Reason == v1alpha1.ReasonGateKeyManaged
	})
	stored.Spec.DisplayName = "changed"
	management.Eventually(t, "another field is changed", func() bool {
		err := server.Client.Patch(t.Context(), stored, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"displayName":"changed"}}`)))
		if apierrors.IsInvalid(err) {
			t.Fatalf("a change of another field: %v", err)
		}
		return err == nil
	})
}
