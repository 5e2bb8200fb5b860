package connect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// FindMachine finds the Machine that a person names, NAME or NAMESPACE/NAME, in the namespace (empty: in all). A name in several
// namespaces is an error that names them.
func FindMachine(ctx context.Context, k client.Reader, namespace, name string) (*v1alpha1.Machine, error) {
	if ns, rest, found := strings.Cut(name, "/"); found {
		namespace, name = ns, rest
	}
	var list v1alpha1.MachineList
	if err := k.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(m v1alpha1.Machine) bool { return m.Name != name })
	switch len(list.Items) {
	case 0:
		return nil, fmt.Errorf("there is no Machine %s%s: ingot machines lists them", name, in(namespace))
	case 1:
		return &list.Items[0], nil
	default:
		return nil, fmt.Errorf("several Machines are called %s, in namespaces %s and %s: say which with -n", name, list.Items[0].Namespace, list.Items[1].Namespace)
	}
}

func in(namespace string) string {
	if namespace == "" {
		return " in any namespace that you may see"
	}
	return " in namespace " + namespace
}
