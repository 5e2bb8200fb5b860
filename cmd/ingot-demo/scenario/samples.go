package scenario

import (
	"errors"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// errSamples is returned for samples that lack an object which the demo needs.
var errSamples = errors.New("the samples do not fit the demo")

// fleetSpec is what the samples ask for.
type fleetSpec struct {
	// hostNamespace holds the hosts.
	hostNamespace string
	// nodeTypes are by name.
	nodeTypes map[string]*v1alpha1.NodeType
	// pools are in the order of the samples. The NodeType of the first one gets the good image, that of the last one the bad image.
	pools []*v1alpha1.NodePool
	// tenants begin with that of the first pool.
	tenants []*v1alpha1.TenantCluster
}

// readFleetSpec reads the pools, NodeTypes and tenants of the samples.
func readFleetSpec(samples []*unstructured.Unstructured) (fleetSpec, error) {
	s := fleetSpec{nodeTypes: map[string]*v1alpha1.NodeType{}}
	for _, o := range samples {
		var err error
		switch o.GetKind() {
		case "NodeProvider":
			s.hostNamespace, _, err = unstructured.NestedString(o.Object, "spec", "hostNamespace")
		case "NodeType":
			s.nodeTypes[o.GetName()], err = typed(o, &v1alpha1.NodeType{})
		case "NodePool":
			err = add(&s.pools, o, &v1alpha1.NodePool{})
		case "TenantCluster":
			err = add(&s.tenants, o, &v1alpha1.TenantCluster{})
		}
		if err != nil {
			return fleetSpec{}, err
		}
	}
	if err := s.check(); err != nil {
		return fleetSpec{}, err
	}
	// The tenant of the first pool is the one in which the demo creates a pod.
	first := s.firstPool().Spec.TenantClusterRef.Name
	slices.SortStableFunc(s.tenants, func(a, b *v1alpha1.TenantCluster) int {
		switch first {
		case a.Name:
			return -1
		case b.Name:
			return 1
		}
		return 0
	})
	return s, nil
}

// check returns an error that names what the samples lack.
func (f fleetSpec) check() error {
	if len(f.pools) < 2 || len(f.tenants) == 0 {
		return fmt.Errorf("%w: they hold %d NodePools and %d TenantClusters, and the story needs two pools and a tenant", errSamples, len(f.pools), len(f.tenants))
	}
	for _, p := range f.pools {
		if f.nodeTypes[p.Spec.NodeTypeRef.Name] == nil {
			return fmt.Errorf("%w: NodePool %s names NodeType %s, which is not among them", errSamples, p.Name, p.Spec.NodeTypeRef.Name)
		}
	}
	return nil
}

// typed converts an object to its type.
func typed[T any](o *unstructured.Unstructured, into *T) (*T, error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return into, nil
}

// add converts an object to its type and appends it.
func add[T any](to *[]*T, o *unstructured.Unstructured, into *T) error {
	object, err := typed(o, into)
	*to = append(*to, object)
	return err
}

// firstPool returns the pool whose NodeType the pinned Machine has, and which gets the good image.
func (f fleetSpec) firstPool() *v1alpha1.NodePool { return f.pools[0] }

// lastPool returns the pool that gets the bad image.
func (f fleetSpec) lastPool() *v1alpha1.NodePool { return f.pools[len(f.pools)-1] }

// gateKey returns the key of the gate taint of the first pool's nodes.
func (f fleetSpec) gateKey() string {
	return f.nodeTypes[f.firstPool().Spec.NodeTypeRef.Name].Spec.Gate.Key()
}

// resourceName returns the resource that the first pool's nodes advertise.
func (f fleetSpec) resourceName() string { return "nvidia.com/gpu" }

// tenantNames returns the names of the tenants.
func (f fleetSpec) tenantNames() []string {
	var out []string
	for _, t := range f.tenants {
		out = append(out, t.Name)
	}
	return out
}

// matchingHosts counts the hosts that the NodeType of the pool selects.
func (f fleetSpec) matchingHosts(pool *v1alpha1.NodePool, hosts []metal3.BareMetalHost) (int, error) {
	selector, err := metav1.LabelSelectorAsSelector(&f.nodeTypes[pool.Spec.NodeTypeRef.Name].Spec.HostSelector)
	if err != nil {
		return 0, fmt.Errorf("hostSelector of NodeType %s: %w", pool.Spec.NodeTypeRef.Name, err)
	}
	n := 0
	for _, h := range hosts {
		if selector.Matches(labels.Set(h.Labels)) {
			n++
		}
	}
	return n, nil
}
