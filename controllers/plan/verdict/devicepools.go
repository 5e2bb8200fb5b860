package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// maxDevices limits the devices of one driver that are read. Every expectation is far smaller, so more devices change no result.
const maxDevices = 1024

// devicePool is a pool of devices that one driver publishes. Its devices count only while it is complete, because the scheduler
// ignores a pool that is not.
type devicePool struct {
	name string
	// staleSlices is how many slices belong to an earlier Node object of the same name.
	staleSlices int
	// slices are the slices of the newest generation. The driver will delete older ones.
	slices []*resourcev1.ResourceSlice
	// incompleteReason says why the pool is not complete; empty: it is.
	incompleteReason string
}

// devicePools has the pools that are published for the node, by driver, sorted by name.
type devicePools map[string][]devicePool

func newDevicePools(all []resourcev1.ResourceSlice, node *corev1.Node) devicePools {
	type key struct{ driver, pool string }
	byPool := map[key][]*resourcev1.ResourceSlice{}
	local := map[key]bool{}
	for i := range all {
		s := &all[i]
		k := key{s.Spec.Driver, s.Spec.Pool.Name}
		// A slice for another node has no devices of this node, but the pool is not complete without it.
		byPool[k] = append(byPool[k], s)
		local[k] = local[k] || isForNode(s, node.Name)
	}
	out := devicePools{}
	for k, members := range byPool {
		if local[k] {
			out[k.driver] = append(out[k.driver], newDevicePool(k.pool, members, node))
		}
	}
	for _, pools := range out {
		slices.SortFunc(pools, func(a, b devicePool) int { return cmp.Compare(a.name, b.name) })
	}
	return out
}

// isForNode reports whether the slice names the node or, if it names none, is in the pool with the name of the node.
func isForNode(s *resourcev1.ResourceSlice, node string) bool {
	if s.Spec.NodeName != nil {
		return *s.Spec.NodeName == node
	}
	return s.Spec.Pool.Name == node
}

func newDevicePool(name string, all []*resourcev1.ResourceSlice, node *corev1.Node) devicePool {
	p := devicePool{name: name}
	slices.SortFunc(all, func(a, b *resourcev1.ResourceSlice) int {
		return cmp.Or(cmp.Compare(b.Spec.Pool.Generation, a.Spec.Pool.Generation), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range all {
		switch {
		case isOfEarlierNode(s, node):
			p.staleSlices++
		case len(p.slices) == 0 || p.slices[0].Spec.Pool.Generation == s.Spec.Pool.Generation:
			p.slices = append(p.slices, s)
		}
	}
	p.incompleteReason = p.findIncompleteReason()
	return p
}

// isOfEarlierNode reports whether the slice is owned by another Node object with the name of the node. For example: a server with
// 8 GPUs is installed again after one was taken out. Its new Node has the old name, and until the tenant's garbage collector
// runs, the old slices still list 8 GPUs. If they counted, the node would pass with a GPU that does not exist.
func isOfEarlierNode(s *resourcev1.ResourceSlice, node *corev1.Node) bool {
	for _, o := range s.OwnerReferences {
		if o.Kind == "Node" && o.Name == node.Name && o.UID != node.UID {
			return true
		}
	}
	return false
}

func (p devicePool) findIncompleteReason() string {
	if p.staleSlices > 0 {
		return fmt.Sprintf("pool %s has %d slices of an earlier Node object", input.Line(p.name, maxName), p.staleSlices)
	}
	names := map[string]bool{}
	for _, s := range p.slices {
		first := p.slices[0].Spec.Pool
		if s.Spec.Pool.ResourceSliceCount != first.ResourceSliceCount {
			return fmt.Sprintf("pool %s: slices of generation %d disagree whether they are %d or %d", input.Line(p.name, maxName),
				first.Generation, first.ResourceSliceCount, s.Spec.Pool.ResourceSliceCount)
		}
		if int64(len(p.slices)) != first.ResourceSliceCount {
			return fmt.Sprintf("pool %s has %d of %d slices of generation %d", input.Line(p.name, maxName), len(p.slices), first.ResourceSliceCount, first.Generation)
		}
		for i := range s.Spec.Devices {
			name := s.Spec.Devices[i].Name
			if names[name] {
				return fmt.Sprintf("pool %s has two devices %s", input.Line(p.name, maxName), input.Line(name, maxName))
			}
			names[name] = true
		}
	}
	return ""
}

// maxName is the longest name, in bytes, that a verdict quotes beside others: 64 bytes, and the mark that Truncate adds to a longer
// name.
const maxName = 64 + len("...")

// devices returns the devices of the node in the newest generation of the pool, complete or not.
func (p devicePool) devices(driver, node string) []device {
	var out []device
	for _, s := range p.slices {
		if !isForNode(s, node) {
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

// usableDevices returns the devices in the complete pools of a driver.
func (pools devicePools) usableDevices(driver, node string) []device {
	var out []device
	for _, p := range pools[driver] {
		if p.incompleteReason == "" && len(out) < maxDevices {
			out = append(out, p.devices(driver, node)...)
		}
	}
	return out[:min(len(out), maxDevices)]
}

// allUsableDevices returns the devices in the complete pools of all drivers.
func (pools devicePools) allUsableDevices(node string) []device {
	var out []device
	for _, driver := range slices.Sorted(maps.Keys(pools)) {
		if len(out) < maxDevices {
			out = append(out, pools.usableDevices(driver, node)...)
		}
	}
	return out[:min(len(out), maxDevices)]
}

// The attributes by which NVIDIA's driver distinguishes kinds of devices.
const (
	attributeType    = "type"
	attributeProfile = "profile"
)

// device is a device that a driver publishes.
type device struct {
	driver string
	*resourcev1.Device
}

// attributeValue is one value of an attribute.
type attributeValue struct {
	text    string
	version bool
}

// attributeValues returns the values of an attribute; none: the device does not have it. A name without a domain belongs to the
// domain of the driver.
func (d device) attributeValues(name string) []attributeValue {
	a, ok := d.Attributes[resourcev1.QualifiedName(name)]
	if !ok && !strings.Contains(name, "/") {
		a = d.Attributes[resourcev1.QualifiedName(d.driver+"/"+name)]
	}
	return values(a)
}

func values(a resourcev1.DeviceAttribute) []attributeValue {
	var out []attributeValue
	add := func(text string, version bool) { out = append(out, attributeValue{text, version}) }
	switch {
	case a.StringValue != nil:
		add(*a.StringValue, false)
	case a.VersionValue != nil:
		add(*a.VersionValue, true)
	case a.IntValue != nil:
		add(strconv.FormatInt(*a.IntValue, 10), false)
	case a.BoolValue != nil:
		add(strconv.FormatBool(*a.BoolValue), false)
	}
	for _, s := range a.StringValues {
		add(s, false)
	}
	for _, s := range a.VersionValues {
		add(s, true)
	}
	for _, i := range a.IntValues {
		add(strconv.FormatInt(i, 10), false)
	}
	for _, b := range a.BoolValues {
		add(strconv.FormatBool(b), false)
	}
	return out
}

// attributeText returns the values of an attribute as one text.
func (d device) attributeText(name string) string {
	var parts []string
	for _, v := range d.attributeValues(name) {
		parts = append(parts, v.text)
	}
	return strings.Join(parts, ",")
}

// isOfKind reports whether the device is of the expected kind.
func (d device) isOfKind(e v1alpha1.ExpectedDevices) bool {
	return d.attributeText(attributeType) == e.Type && (len(e.Profiles) == 0 || slices.Contains(e.Profiles, d.attributeText(attributeProfile)))
}

// kindText describes the kind of the device.
func (d device) kindText() string {
	kind := "of type " + cmp.Or(input.Line(d.attributeText(attributeType), maxName), "unknown")
	if p := d.attributeText(attributeProfile); p != "" {
		kind += " and profile " + input.Line(p, maxName)
	}
	return kind
}

// isAccepted reports whether every value is one of the expected ones. The API requires semantic versions, without leading zeros:
// the driver 550.163.01 is published as 550.163.1.
func isAccepted(observed []attributeValue, accepted []string) bool {
	for _, v := range observed {
		if !slices.ContainsFunc(accepted, func(w string) bool {
			return w == v.text || v.version && normalizedVersion(w) == normalizedVersion(v.text)
		}) {
			return false
		}
	}
	return true
}

func normalizedVersion(version string) string {
	parts := strings.Split(version, ".")
	for i, p := range parts {
		parts[i] = cmp.Or(strings.TrimLeft(p, "0"), "0")
	}
	return strings.Join(parts, ".")
}
