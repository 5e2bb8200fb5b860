package environment

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/config"
)

// admissionTime is how long the API server waits for a manager that shares the processors with everything else, in seconds.
const admissionTime = 30

// AskManager has the API server ask the manager that listens at the address before a NodeType is written: by the
// configuration that is shipped, with a URL in place of the Service.
func AskManager(ctx context.Context, c client.Client, address string) error {
	objects, err := ReadManifests(config.Files, "webhook/nodetype.yaml")
	if err != nil {
		return err
	}
	for _, o := range objects {
		webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return fmt.Errorf("read %s: %w", o.GetName(), err)
		}
		for _, one := range webhooks {
			webhook, ok := one.(map[string]any)
			if !ok {
				return fmt.Errorf("read %s: a webhook is no object", o.GetName())
			}
			path, found, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
			if err != nil || !found {
				return errors.Join(fmt.Errorf("read %s: no path of a Service", o.GetName()), err)
			}
			webhook["clientConfig"], webhook["timeoutSeconds"] = map[string]any{"url": "https://" + address + path}, int64(admissionTime)
		}
		if err := unstructured.SetNestedSlice(o.Object, webhooks, "webhooks"); err != nil {
			return fmt.Errorf("write %s: %w", o.GetName(), err)
		}
	}
	return Apply(ctx, c, objects)
}
