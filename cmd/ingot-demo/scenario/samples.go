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

// ErrSamples: the samples lack what the story is about.
var ErrSamples = errors.New("the samples do not fit the demo")

// Site is what the samples ask for.
type Site struct {
	// HostNamespace holds the hosts.
	HostNamespace string
	// NodeTypes by name.
	NodeTypes map[string]*v1alpha1.NodeType
	// Pools in the order of the samples: the first one's NodeType is rolled, the last one's gets the bad image.
	Pools []*v1alpha1.NodePool
	// Tenants, the first pool's first.
	Tenants []*v1alpha1.TenantCluster
}

// ReadSite reads the objects that the story speaks of.
func ReadSite(samples []*unstructured.Unstructured) (Site, error) {
	s := Site{NodeTypes: map[string]*v1alpha1.NodeType{}}
	for _, o := range samples {
		var err error
		switch o.GetKind() {
		case "NodeProvider":
			s.HostNamespace, _, err = unstructured.NestedString(o.Object, "spec", "hostNamespace")
		case "NodeType":
			s.NodeTypes[o.GetName()], err = typed(o, &v1alpha1.NodeType{})
		case "NodePool":
			err = add(&s.Pools, o, &v1alpha1.NodePool{})
		case "TenantCluster":
			err = add(&s.Tenants, o, &v1alpha1.TenantCluster{})
		}
		if err != nil {
			return Site{}, err
		}
	}
	if err := s.check(); err != nil {
		return Site{}, err
	}
	// The first pool's tenant is the one whose pods are looked at.
	first := s.First().Spec.TenantClusterRef.Name
	slices.SortStableFunc(s.Tenants, func(a, b *v1alpha1.TenantCluster) int {
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

// check says what the samples lack.
func (s Site) check() error {
	if len(s.Pools) < 2 || len(s.Tenants) == 0 {
		return fmt.Errorf("%w: they hold %d NodePools and %d TenantClusters, and the story needs two pools and a tenant", ErrSamples, len(s.Pools), len(s.Tenants))
	}
	for _, p := range s.Pools {
		if s.NodeTypes[p.Spec.NodeTypeRef.Name] == nil {
			return fmt.Errorf("%w: NodePool %s names NodeType %s, which is not among them", ErrSamples, p.Name, p.Spec.NodeTypeRef.Name)
		}
	}
	return nil
}

func typed[T any](o *unstructured.Unstructured, into *T) (*T, error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return into, nil
}

func add[T any](to *[]*T, o *unstructured.Unstructured, into *T) error {
	object, err := typed(o, into)
	*to = append(*to, object)
	return err
}

// First is the pool which gets the pinned Machine's siblings and the good image.
func (s Site) First() *v1alpha1.NodePool { return s.Pools[0] }

// Last is the pool that gets the bad image.
func (s Site) Last() *v1alpha1.NodePool { return s.Pools[len(s.Pools)-1] }

// Gate is the taint's key of the first pool's nodes.
func (s Site) Gate() string {
	return s.NodeTypes[s.First().Spec.NodeTypeRef.Name].Spec.Gate.Key()
}

// Resource is what the first pool's nodes advertise.
func (s Site) Resource() string { return "nvidia.com/gpu" }

// TenantNames names the tenants' clusters.
func (s Site) TenantNames() []string {
	var out []string
	for _, t := range s.Tenants {
		out = append(out, t.Name)
	}
	return out
}

// Share is how many hosts fit a pool's NodeType.
func (s Site) Share(pool *v1alpha1.NodePool, hosts []metal3.BareMetalHost) (int, error) {
	selector, err := metav1.LabelSelectorAsSelector(&s.NodeTypes[pool.Spec.NodeTypeRef.Name].Spec.HostSelector)
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
