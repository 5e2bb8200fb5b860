package demo

import (
	"context"
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

// errSamples: the samples lack what the story is about.
var errSamples = errors.New("the samples do not fit the demo")

// site is what the samples ask for.
type site struct {
	hostNamespace string
	nodeTypes     map[string]*v1alpha1.NodeType
	// pools in the order of the samples: the first one's NodeType is rolled, the last one's gets the bad image.
	pools   []*v1alpha1.NodePool
	tenants []*v1alpha1.TenantCluster
}

// readSite reads the objects that the story speaks of.
func readSite(samples []*unstructured.Unstructured) (site, error) {
	s := site{nodeTypes: map[string]*v1alpha1.NodeType{}}
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
			return site{}, err
		}
	}
	if err := s.check(); err != nil {
		return site{}, err
	}
	// The first pool's tenant is the one whose pods are looked at.
	first := s.first().Spec.TenantClusterRef.Name
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

// check says what the samples lack.
func (s site) check() error {
	if len(s.pools) < 2 || len(s.tenants) == 0 {
		return fmt.Errorf("%w: they hold %d NodePools and %d TenantClusters, and the story needs two pools and a tenant", errSamples, len(s.pools), len(s.tenants))
	}
	for _, p := range s.pools {
		if s.nodeTypes[p.Spec.NodeTypeRef.Name] == nil {
			return fmt.Errorf("%w: NodePool %s names NodeType %s, which is not among them", errSamples, p.Name, p.Spec.NodeTypeRef.Name)
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

// first pool, which gets the pinned Machine's siblings and the good image; last pool, which gets the bad one.
func (s site) first() *v1alpha1.NodePool { return s.pools[0] }
func (s site) last() *v1alpha1.NodePool  { return s.pools[len(s.pools)-1] }

// gate is the taint's key of the first pool's nodes.
func (s site) gate() string {
	return s.nodeTypes[s.first().Spec.NodeTypeRef.Name].Spec.Gate.Key()
}

// resource is what the first pool's nodes advertise.
func (s site) resource() string { return "nvidia.com/gpu" }

// tenantNames names the tenants' clusters.
func (s site) tenantNames() []string {
	var out []string
	for _, t := range s.tenants {
		out = append(out, t.Name)
	}
	return out
}

// share is how many hosts fit a pool's NodeType.
func (s site) share(pool *v1alpha1.NodePool, hosts []metal3.BareMetalHost) (int, error) {
	selector, err := metav1.LabelSelectorAsSelector(&s.nodeTypes[pool.Spec.NodeTypeRef.Name].Spec.HostSelector)
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

// scale asks a pool for so many Machines.
func (t *story) scale(ctx context.Context, pool *v1alpha1.NodePool, replicas int) error {
	return t.patch(ctx, &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Name}},
		fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}
