package tenantaccess

import (
	"context"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheSlicesOfANodeAreItsOwnAndThoseOfItsPools(t *testing.T) {
	all := true
	for name, spec := range map[string]resourcev1.ResourceSliceSpec{
		"of-a":            {NodeName: new("of-a"), Pool: resourcev1.ResourcePool{Name: "of-a"}},
		"of-a-for-all":    {AllNodes: &all, Pool: resourcev1.ResourcePool{Name: "of-a"}},
		"of-a-shared":     {NodeName: new("of-a"), Pool: resourcev1.ResourcePool{Name: "of-rack"}},
		"of-a-rest":       {NodeName: new("of-b"), Pool: resourcev1.ResourcePool{Name: "of-rack"}},
		"of-b-and-nobody": {NodeName: new("of-b"), Pool: resourcev1.ResourcePool{Name: "of-b"}},
	} {
		spec.Driver, spec.Pool.ResourceSliceCount = "gpu.nvidia.com", 2
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
		server.Create(t, slice)
		t.Cleanup(func() { _ = server.Client.Delete(context.Background(), slice) })
	}
	r := newRegistry(t, Options{})
	if err := r.Set(t.Context(), tenantKey, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	usable(t, r, tenantKey)
	eventually(t, "the slices of a, and no others, are found", func() bool {
		access, err := r.For(tenantKey)
		if err != nil || !access.SlicesServed {
			return false
		}
		found, err := access.SlicesOf(t.Context(), "of-a")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range found {
			names = append(names, found[i].Name)
		}
		slices.Sort(names)
		return strings.Join(names, " ") == "of-a of-a-for-all of-a-rest of-a-shared"
	})
	none, err := (&Access{}).SlicesOf(t.Context(), "of-a")
	if err != nil || none != nil {
		t.Errorf("%v, %v of a tenant that serves none", none, err)
	}
}

func TestASliceKeepsWhatAVerdictReadsAndNoMore(t *testing.T) {
	attributes := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: new("gpu")}}
	taints := []resourcev1.DeviceTaint{{Key: "k", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		SharedCounters: []resourcev1.CounterSet{{Name: "c"}},
		Devices: []resourcev1.Device{{Name: "gpu-0", Attributes: attributes, Taints: taints, BindingConditions: []string{"b"},
			ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "c"}}}},
	}}
	slice = trimSlice(slice)
	d := slice.Spec.Devices[0]
	if slice.Spec.SharedCounters != nil || d.ConsumesCounters != nil || d.BindingConditions != nil || len(d.Attributes) != 1 || len(d.Taints) != 1 {
		t.Errorf("%+v", slice.Spec)
	}
}
