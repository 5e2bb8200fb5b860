package verify

import (
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
)

// Observation is what files show of a cluster.
type Observation struct {
	node corev1.Node
	// machine is the Machine of the node; nil: the command line names none.
	machine *v1alpha1.Machine
	// slices are the cluster's ResourceSlices; slicesRead says that a file has them.
	slices     []resourcev1.ResourceSlice
	slicesRead bool
	// classes are the DeviceClasses by name; nil: no file has them.
	classes    map[string]verdict.DeviceClass
	daemonSets []appsv1.DaemonSet
}

func (o options) read(stdin io.Reader) (Observation, error) {
	var out Observation
	nodes, err := readList[corev1.Node](o.node, stdin, corev1.SchemeGroupVersion.WithKind("Node"))
	if err != nil {
		return out, err
	}
	if len(nodes) == 0 {
		return out, fmt.Errorf("%s: expected one Node, seen none: kubectl get node NAME -o json writes it", o.node)
	}
	if len(nodes) > 1 {
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		return out, fmt.Errorf("%s: expected one Node, seen %d: %s", o.node, len(nodes), strings.Join(names, ", "))
	}
	out.node = nodes[0]
	if o.slices != "" {
		out.slicesRead = true
		if out.slices, err = readList[resourcev1.ResourceSlice](o.slices, stdin, resourcev1.SchemeGroupVersion.WithKind("ResourceSlice")); err != nil {
			return out, err
		}
	}
	if o.deviceClasses != "" {
		classes, err := readList[resourcev1.DeviceClass](o.deviceClasses, stdin, resourcev1.SchemeGroupVersion.WithKind("DeviceClass"))
		if err != nil {
			return out, err
		}
		out.classes = map[string]verdict.DeviceClass{}
		for i := range classes {
			out.classes[classes[i].Name] = verdict.DeviceClass{Selectors: verdict.Compile(&classes[i])}
		}
	}
	if o.daemonSets != "" {
		out.daemonSets, err = readList[appsv1.DaemonSet](o.daemonSets, stdin, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
	}
	return out, err
}

// readList reads the objects of one kind from a file. Fields that this version does not know are ignored, because the cluster may be newer.
func readList[T any](path string, stdin io.Reader, kind schema.GroupVersionKind) ([]T, error) {
	all, err := offline.Read([]string{path}, stdin)
	if err != nil {
		return nil, err
	}
	var out []T
	var other *offline.Manifest
	for i, m := range all {
		if m.Kind() != kind.Kind || m.APIVersion() != kind.GroupVersion().String() {
			// Manifests may be of several kinds; what is of this kind must be of the version that can be read.
			if other == nil && m.Kind() != "List" || m.Kind() == kind.Kind {
				other = &all[i]
			}
			continue
		}
		var one T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &one); err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", m.File, m.Line(""), m, err)
		}
		out = append(out, one)
	}
	if other != nil && (len(out) == 0 || other.Kind() == kind.Kind) {
		return nil, fmt.Errorf("%s:%d: expected %s %s, seen %s %s: get it with kubectl get %s -o json",
			other.File, other.Line(""), kind.GroupVersion(), kind.Kind, other.APIVersion(), other.Kind(), kubectlResource(kind))
	}
	return out, nil
}

// kubectlResource returns the name by which kubectl returns exactly that version: resourceslices.v1.resource.k8s.io.
func kubectlResource(kind schema.GroupVersionKind) string {
	name := strings.ToLower(kind.Kind) + "s"
	if kind.Kind == "DeviceClass" {
		name = "deviceclasses"
	}
	if kind.Group == "" {
		return name
	}
	return name + "." + kind.Version + "." + kind.Group
}
