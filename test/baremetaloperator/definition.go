package baremetaloperator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conditionsSchema adds status.conditions to the CRD, as releases of 2026 have it.
const conditionsSchema = `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions","value":
{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],"items":{"type":"object","required":["type","status","reason","message","lastTransitionTime"],"properties":{
"type":{"type":"string"},"status":{"type":"string","enum":["True","False","Unknown"]},"reason":{"type":"string"},"message":{"type":"string"},
"observedGeneration":{"type":"integer","format":"int64"},"lastTransitionTime":{"type":"string","format":"date-time"}}}}}]`

// AddConditions gives the CRD BareMetalHost of the API server the conditions of newer releases. Without it the API server drops what an Operator
// with Options.Conditions writes, as a site does that has an older CRD.
func AddConditions(ctx context.Context, c client.Client) error {
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	definition.SetName("baremetalhosts.metal3.io")
	if err := c.Patch(ctx, definition, client.RawPatch(types.JSONPatchType, []byte(conditionsSchema))); err != nil {
		return fmt.Errorf("add conditions to the CRD of BareMetalHosts: %w", err)
	}
	return nil
}
