package baremetaloperator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var schemaKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// statusSchema adds status.conditions, the count of failed installations and the type of error of a detachment to the CRD, as releases of 2026 have them.
// A release before cannot write that type: the API server refuses the status.
const statusSchema = `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions","value":
{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],"items":{"type":"object","required":["type","status","reason","message","lastTransitionTime"],"properties":{
"type":{"type":"string"},"status":{"type":"string","enum":["True","False","Unknown"]},"reason":{"type":"string"},"message":{"type":"string"},
"observedGeneration":{"type":"integer","format":"int64"},"lastTransitionTime":{"type":"string","format":"date-time"}}}}},
{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/provisioningFailCount","value":{"type":"integer","default":0}},
{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/lastAttemptedImage","value":
{"type":"object","required":["url"],"properties":{"url":{"type":"string"},"checksum":{"type":"string"},"checksumType":{"type":"string"},"format":{"type":"string"}}}},
{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/errorType/enum","value":["provisioned registration error",
"registration error","inspection error","preparation error","provisioning error","power management error","detach error","servicing error"]}]`

// acceleratorsSchema adds spec.hardware.accelerators to the CRD HardwareData.
const acceleratorsSchema = `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/hardware/properties/accelerators","value":
{"type":"array","items":{"type":"object","properties":{
"type":{"type":"string"},"vendorID":{"type":"string"},"deviceID":{"type":"string"},"deviceInfo":{"type":"string"},"pciAddress":{"type":"string"}}}}}]`

// AddConditions gives the CRDs BareMetalHost and HardwareData of the API server the fields of releases of 2026: conditions, the count of failed
// installations and accelerators. Without it the API server drops what an Operator with Options.Conditions writes, as a site does that has older CRDs.
func AddConditions(ctx context.Context, c client.Client) error {
	for name, fields := range map[string]string{"baremetalhosts.metal3.io": statusSchema, "hardwaredata.metal3.io": acceleratorsSchema} {
		definition := &unstructured.Unstructured{}
		definition.SetGroupVersionKind(schemaKind)
		definition.SetName(name)
		if err := c.Patch(ctx, definition, client.RawPatch(types.JSONPatchType, []byte(fields))); err != nil {
			return fmt.Errorf("add the fields of newer releases to the CRD %s: %w", name, err)
		}
	}
	return nil
}
