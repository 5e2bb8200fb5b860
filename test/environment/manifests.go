package environment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
)

// fieldOwner is the field manager of the objects that are applied.
const fieldOwner = client.FieldOwner("ingot-demo")

// ReadManifests reads the objects of the YAML files in and below dir, in the order of the file names.
func ReadManifests(files fs.FS, dir string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	err := fs.WalkDir(files, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" || path.Base(name) == "kustomization.yaml" {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		objects, err := Decode(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, objects...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	return out, nil
}

// ReadSamples reads a folder such as config/samples. It returns the objects for the management cluster and those for each tenant. The latter
// are in the folder tenant; without that folder they are the vendors' software that the NodeTypes need. Other folders hold alternatives, and are not read.
func ReadSamples(files fs.FS) (management, tenants []*unstructured.Unstructured, err error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, nil, fmt.Errorf("read the samples: %w", err)
	}
	given := false
	for _, e := range entries {
		if e.IsDir() && e.Name() != "tenant" {
			continue
		}
		objects, err := ReadManifests(files, e.Name())
		if err != nil {
			return nil, nil, err
		}
		if e.Name() == "tenant" {
			tenants, given = objects, true
		} else {
			management = append(management, objects...)
		}
	}
	if given {
		return management, tenants, nil
	}
	tenants, err = VendorObjects(management)
	return management, tenants, err
}

// ReadSharingSamples reads the samples for a cluster that tenants share from a folder such as config/samples: those of its folder sharing, with the
// namespaces, the provider and the image of the others. It returns what ReadSamples does.
func ReadSharingSamples(files fs.FS) (management, tenants []*unstructured.Unstructured, err error) {
	for _, name := range []string{"00-namespaces.yaml", "nodeprovider.yaml", "osimage.yaml", "sharing"} {
		objects, err := ReadManifests(files, name)
		if err != nil {
			return nil, nil, err
		}
		management = append(management, objects...)
	}
	tenants, err = VendorObjects(management)
	return management, tenants, err
}

// VendorObjects returns the objects of the vendors' software that the NodeTypes of the samples need in a tenant's cluster.
func VendorObjects(samples []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	parts, err := VendorParts(samples)
	if err != nil {
		return nil, fmt.Errorf("make the vendors' software of the samples: %w", err)
	}
	var out []*unstructured.Unstructured
	for _, p := range parts {
		out = append(out, p.Objects...)
	}
	return out, nil
}

// Decode reads the objects of a YAML text.
func Decode(text []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// Apply applies objects by server-side apply: Namespaces and CRDs first, the others in their order.
func Apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	first := func(o *unstructured.Unstructured) int {
		return slices.Index([]string{"Namespace", "CustomResourceDefinition"}, o.GetKind())
	}
	ordered := slices.Clone(objects)
	slices.SortStableFunc(ordered, func(a, b *unstructured.Unstructured) int {
		return boolInt(first(a) < 0) - boolInt(first(b) < 0)
	})
	for _, o := range ordered {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"), err)
		}
	}
	return nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SetField sets a field of every object of the kind. It returns an error when there is no such object.
func SetField(objects []*unstructured.Unstructured, kind string, value any, field ...string) error {
	found := false
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		found = true
		if err := unstructured.SetNestedField(o.Object, value, field...); err != nil {
			return fmt.Errorf("set %s of %s %s: %w", strings.Join(field, "."), kind, o.GetName(), err)
		}
	}
	if !found {
		return fmt.Errorf("the samples hold no %s: the demo needs one", kind)
	}
	return nil
}

// FirstOfKind returns the namespace and name of the first object of the kind, or "" when there is none.
func FirstOfKind(objects []*unstructured.Unstructured, kind string) (namespace, name string) {
	for _, o := range objects {
		if o.GetKind() == kind {
			return o.GetNamespace(), o.GetName()
		}
	}
	return "", ""
}

// VendorParts returns the parts of the vendors' software that the NodeTypes of the samples need in a tenant's cluster.
func VendorParts(samples []*unstructured.Unstructured) ([]software.Component, error) {
	images := map[string]v1alpha1.OSImageSpec{}
	var nodeTypes []*v1alpha1.NodeType
	for _, o := range samples {
		var err error
		switch o.GetKind() {
		case "OSImage":
			image := &v1alpha1.OSImage{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, image)
			images[image.Name] = image.Spec
		case "NodeType":
			nodeType := &v1alpha1.NodeType{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, nodeType)
			nodeTypes = append(nodeTypes, nodeType)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	var all []software.NodeType
	for _, n := range nodeTypes {
		image := images[n.Spec.OSImageRef.Name]
		plan, err := presentation.Resolve(spec.Request{GPU: n.Spec.GPU, Image: image, Resources: n.Spec.Resources})
		if err != nil {
			return nil, fmt.Errorf("NodeType %s: %w", n.Name, err)
		}
		all = append(all, software.NewNodeType(n, image, plan))
	}
	return tenantsoftware.Components(all)
}

// webhookTimeoutSeconds is how long the API server waits for the manager, which shares the processors with everything else.
const webhookTimeoutSeconds = 30

// ConfigureWebhook applies the webhook configuration that is shipped, with a URL of the manager's webhook server in place of the Service. From
// then on the API server calls the manager before it writes a NodeType.
func ConfigureWebhook(ctx context.Context, c client.Client, address string) error {
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
			webhook["clientConfig"], webhook["timeoutSeconds"] = map[string]any{"url": "https://" + address + path}, int64(webhookTimeoutSeconds)
		}
		if err := unstructured.SetNestedSlice(o.Object, webhooks, "webhooks"); err != nil {
			return fmt.Errorf("write %s: %w", o.GetName(), err)
		}
	}
	return Apply(ctx, c, objects)
}
