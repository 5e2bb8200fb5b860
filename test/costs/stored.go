package costs

import (
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds are those of the management cluster that there are more of in a larger fleet.
var kinds = []schema.GroupVersionKind{
	{Group: "ingot.dev", Version: "v1alpha1", Kind: "Machine"}, {Group: "ingot.dev", Version: "v1alpha1", Kind: "HostRecord"},
	{Group: "ingot.dev", Version: "v1alpha1", Kind: "NodePool"}, {Group: "ingot.dev", Version: "v1alpha1", Kind: "NodeQuota"},
	{Group: "ingot.dev", Version: "v1alpha1", Kind: "NodeType"}, {Group: "ingot.dev", Version: "v1alpha1", Kind: "Entitlement"},
	{Group: "ingot.dev", Version: "v1alpha1", Kind: "TenantCluster"}, {Group: "ingot.dev", Version: "v1alpha1", Kind: "NodeProvider"},
	{Group: "metal3.io", Version: "v1alpha1", Kind: "BareMetalHost"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ConfigMap"},
}

// measureObjects adds the bytes of all objects of each kind as JSON, as they are stored, and of the largest one of all kinds.
func (l *life) measureObjects(ctx context.Context) error {
	largest := 0
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := l.Env.ManagementClient.List(ctx, list); err != nil {
			return err
		}
		sum := 0
		for _, o := range list.Items {
			if strings.HasPrefix(o.GetNamespace(), "kube-") {
				continue
			}
			text, err := json.Marshal(o.Object)
			if err != nil {
				return err
			}
			sum += len(text)
			largest = max(largest, len(text))
		}
		l.ledger[Row{l.Options.Provider, Stored, management, "bytes of all " + kind.Kind + "s"}] = sum
	}
	l.ledger[Row{l.Options.Provider, Stored, management, largestObject}] = largest
	return nil
}

// largestObject is the row of the largest object. It is not per Machine.
const largestObject = "bytes of the largest object"
