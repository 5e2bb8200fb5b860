package verdict

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// forms are the GPUs of a driver that publishes each GPU in several forms, of which a claim leaves one.
//
// Without it: a claim takes a GPU of an admitted node for a virtual machine, NVIDIA's DRA driver withdraws the device of that GPU for containers, one of eight is
// missing, and the node is closed to new pods by its first claim.
type forms struct {
	// attribute tells which GPU a device is a form of; empty: a missing form is not accepted.
	attribute string
	// all are the GPUs that have a form.
	all map[string]bool
}

// newForms reads the devices of all kinds. A form is accepted as missing once the node has been admitted: before that no claim of the tenant can hold one, and a
// driver that does not publish it is not set up as promised.
func newForms(in Input, e v1alpha1.ExpectedSlices, kinds [][]device) forms {
	f := forms{all: map[string]bool{}}
	if e.GPUAttribute == "" || !in.HasBeenReady && (in.Previous == nil || !in.Previous.Admitted) {
		return f
	}
	f.attribute = e.GPUAttribute
	for _, devices := range kinds {
		for _, d := range devices {
			f.add(f.all, d)
		}
	}
	return f
}

// add adds the GPU of a device that says which one it is.
func (f forms) add(gpus map[string]bool, d device) {
	for _, v := range d.attributeValues(f.attribute) {
		gpus[v.text] = true
	}
}

// absent returns how many GPUs have another form than those of the devices.
func (f forms) absent(devices []device) int {
	own := map[string]bool{}
	for _, d := range devices {
		f.add(own, d)
	}
	return len(f.all) - len(own)
}

// countCheck compares how many GPUs have the form of the devices, or another one.
func (f forms) countCheck(name string, expected int, devices []device, hint string) v1alpha1.Check {
	if f.attribute == "" {
		return countCheck(name, expected, len(devices), hint)
	}
	others := f.absent(devices)
	c := countCheck(name, expected, len(devices)+others, hint)
	if others > 0 {
		c.Observed = fmt.Sprintf("%d, and %d in another form", len(devices), others)
	}
	return c
}

// absentForms returns how many forms of the driver's GPUs may be absent from the classes of its devices.
func absentForms(in Input, e v1alpha1.ExpectedSlices) (n int) {
	kinds, _ := sortByKind(e, in.pools.usableDevices(e.Driver, in.Node.Name))
	f := newForms(in, e, kinds)
	if f.attribute == "" {
		return 0
	}
	for _, devices := range kinds {
		n += f.absent(devices)
	}
	return n
}
