package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// maxDevices bounds what is looked at of one driver: no promise comes near it, so what lies beyond changes no result.
const maxDevices = 1024

// pool is what one driver publishes under one pool's name. Its devices count only while it is complete: the scheduler
// ignores the others.
type pool struct {
	name string
	// residue counts the slices that belong to an earlier Node object of the same name.
	residue int
	// members are the slices of the newest generation; what is older is about to be deleted by the driver.
	members []*resourcev1.ResourceSlice
	// fault says why it is not complete; empty: it is.
	fault string
}

// inventory is what is published for the node, by driver; a driver's pools are sorted by name.
type inventory map[string][]pool

func takeInventory(all []resourcev1.ResourceSlice, node *corev1.Node) inventory {
	type key struct{ driver, pool string }
	byPool := map[key][]*resourcev1.ResourceSlice{}
	local := map[key]bool{}
	for i := range all {
		s := &all[i]
		k := key{s.Spec.Driver, s.Spec.Pool.Name}
		// A slice of the pool that is for another node has no devices here, but belongs to what makes the pool complete.
		byPool[k] = append(byPool[k], s)
		local[k] = local[k] || forNode(s, node.Name)
	}
	out := inventory{}
	for k, members := range byPool {
		if local[k] {
			out[k.driver] = append(out[k.driver], newPool(k.pool, members, node))
		}
	}
	for _, pools := range out {
		slices.SortFunc(pools, func(a, b pool) int { return cmp.Compare(a.name, b.name) })
	}
	return out
}

// forNode: a slice names its node, or lies in the pool that is named after the node.
func forNode(s *resourcev1.ResourceSlice, node string) bool {
	if s.Spec.NodeName != nil {
		return *s.Spec.NodeName == node
	}
	return s.Spec.Pool.Name == node
}

func newPool(name string, all []*resourcev1.ResourceSlice, node *corev1.Node) pool {
	p := pool{name: name}
	slices.SortFunc(all, func(a, b *resourcev1.ResourceSlice) int {
		return cmp.Or(cmp.Compare(b.Spec.Pool.Generation, a.Spec.Pool.Generation), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range all {
		switch {
		case ofEarlierNode(s, node):
			p.residue++
		case len(p.members) == 0 || p.members[0].Spec.Pool.Generation == s.Spec.Pool.Generation:
			p.members = append(p.members, s)
		}
	}
	p.fault = p.findFault()
	return p
}

// ofEarlierNode: kubelet and drivers make the Node the owner of its slices. Those of a deleted Node object stay until the
// garbage collector comes by, and tell what an earlier installation had.
func ofEarlierNode(s *resourcev1.ResourceSlice, node *corev1.Node) bool {
	for _, o := range s.OwnerReferences {
		if o.Kind == "Node" && o.Name == node.Name && o.UID != node.UID {
			return true
		}
	}
	return false
}

func (p pool) findFault() string {
	if p.residue > 0 {
		return fmt.Sprintf("pool %s has %d slices of an earlier Node object", v1alpha1.Truncate(p.name, maxName), p.residue)
	}
	names := map[string]bool{}
	for _, s := range p.members {
		whole := p.members[0].Spec.Pool
		if s.Spec.Pool.ResourceSliceCount != whole.ResourceSliceCount {
			return fmt.Sprintf("pool %s: slices of generation %d disagree whether they are %d or %d", v1alpha1.Truncate(p.name, maxName),
				whole.Generation, whole.ResourceSliceCount, s.Spec.Pool.ResourceSliceCount)
		}
		if int64(len(p.members)) != whole.ResourceSliceCount {
			return fmt.Sprintf("pool %s has %d of %d slices of generation %d", v1alpha1.Truncate(p.name, maxName), len(p.members), whole.ResourceSliceCount, whole.Generation)
		}
		for i := range s.Spec.Devices {
			name := s.Spec.Devices[i].Name
			if names[name] {
				return fmt.Sprintf("pool %s has two devices %s", v1alpha1.Truncate(p.name, maxName), v1alpha1.Truncate(name, maxName))
			}
			names[name] = true
		}
	}
	return ""
}

// maxName is the longest name, in bytes, that a verdict quotes beside others.
const maxName = 67

// devices of the node in the pool's newest generation, complete or not.
func (p pool) devices(driver, node string) []device {
	var out []device
	for _, s := range p.members {
		if !forNode(s, node) {
			continue
		}
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			if (d.NodeName == nil || *d.NodeName == node) && len(out) < maxDevices {
				out = append(out, device{driver: driver, Device: d})
			}
		}
	}
	return out
}

// usable are the devices of a driver's complete pools.
func (inv inventory) usable(driver, node string) []device {
	var out []device
	for _, p := range inv[driver] {
		if p.fault == "" && len(out) < maxDevices {
			out = append(out, p.devices(driver, node)...)
		}
	}
	return out[:min(len(out), maxDevices)]
}

// allUsable are the devices of all drivers' complete pools.
func (inv inventory) allUsable(node string) []device {
	var out []device
	for _, driver := range slices.Sorted(maps.Keys(inv)) {
		if len(out) < maxDevices {
			out = append(out, inv.usable(driver, node)...)
		}
	}
	return out[:min(len(out), maxDevices)]
}
