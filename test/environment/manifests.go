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
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner is who the API servers see as the author of what the demo applies.
const fieldOwner = client.FieldOwner("ingot-demo")

// ReadManifests reads every object of the YAML files below dir, in the order of their names.
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

// ReadSamples reads a folder such as config/samples: what is applied to the management cluster, and what is applied to each
// tenant's. That lies in its folder tenant; without one it is what the NodeTypes need of the vendors' software.
func ReadSamples(files fs.FS) (management, tenants []*unstructured.Unstructured, err error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, nil, fmt.Errorf("read the samples: %w", err)
	}
	given := false
	for _, e := range entries {
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
	parts, err := Vendors(management)
	if err != nil {
		return nil, nil, fmt.Errorf("make the vendors' software of the samples: %w", err)
	}
	for _, p := range parts {
		tenants = append(tenants, p.Objects...)
	}
	return management, tenants, nil
}

// Decode reads every object of a YAML text.
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

// Apply applies objects on the server's side: Namespaces and CRDs first, the rest in the order given.
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

// Set changes one field of every object of the kind.
func Set(objects []*unstructured.Unstructured, kind string, value any, field ...string) error {
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

// Named returns the name of the first object of the kind, "" when there is none.
func Named(objects []*unstructured.Unstructured, kind string) (namespace, name string) {
	for _, o := range objects {
		if o.GetKind() == kind {
			return o.GetNamespace(), o.GetName()
		}
	}
	return "", ""
}
