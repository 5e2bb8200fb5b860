package presentation

import (
	"slices"

	"github.com/ingot-dev/ingot/presentation/plan"
)

// The types of package plan, under the names that users of presentation know.
type (
	// Request asks how the GPUs of a node are presented.
	Request = plan.Request
	// Plan is what the operating system must be told, and what the node must then advertise.
	Plan = plan.Plan
	// Modules of the kernel.
	Modules = plan.Modules
	// File is a file of the node.
	File = plan.File
	// SecretFile is a file of the node whose content is a key of a Secret.
	SecretFile = plan.SecretFile
	// Unit is a systemd unit that is enabled and started.
	Unit = plan.Unit
	// Tenant is what the vendor's software in a tenant cluster must be told.
	Tenant = plan.Tenant
	// Configuration is one of several that a tenant's software knows by name.
	Configuration = plan.Configuration
	// HostDevice is an entry of KubeVirt's permittedHostDevices.
	HostDevice = plan.HostDevice
	// Warning is something that was accepted and is not certain.
	Warning = plan.Warning
	// Expectation is everything that a node must show before it is admitted.
	Expectation = plan.Expectation
	// Resource is a resource that a node must advertise.
	Resource = plan.Resource
	// Label is a label that a vendor's software sets to tell what it found.
	Label = plan.Label
	// SliceExpectation is what one DRA driver must publish for a node.
	SliceExpectation = plan.SliceExpectation
	// DeviceClassExpectation is a DeviceClass that claims name.
	DeviceClassExpectation = plan.DeviceClassExpectation
	// DeviceExpectation is so many devices of one kind.
	DeviceExpectation = plan.DeviceExpectation
	// Refusal says why a presentation is impossible.
	Refusal = plan.Refusal
)

// Resolver is the type of Resolve.
type Resolver func(Request) (Plan, error)

// Resolve says what the operating system of a node must be told, and what the node must then advertise. It is
// deterministic. An impossible request, and one that this version does not know, is a *Refusal.
func Resolve(r Request) (Plan, error) {
	p, err := resolveGPU(r)
	if err != nil {
		return Plan{}, err
	}
	if p.Expectation, err = Declare(p.Expectation, r.Resources); err != nil {
		return Plan{}, err
	}
	p.Expectation.AbsentPrefixes = append(slices.Clone(acceleratorDomains), p.Expectation.AbsentPrefixes...)
	p.Expectation.AbsentDrivers = absentDrivers(p.Expectation)
	p.Expectation.Kernel = r.Image.OS.Kernel
	p.Expectation.Kubelet = r.Image.Software.Kubelet
	return p, nil
}

// Validate says whether a request can be resolved. The error is a *Refusal.
func Validate(r Request) error {
	_, err := Resolve(r)
	return err
}

func resolveGPU(r Request) (Plan, error) {
	if r.GPU == nil {
		return Plan{}, nil
	}
	for _, row := range modes {
		if row.fits(r.GPU) {
			if row.resolve == nil {
				return Plan{}, unknown(row)
			}
			return row.resolve(r)
		}
	}
	return Plan{}, unknown(mode{Mode: r.GPU.Presentation.Mode, Variant: "vendor " + string(r.GPU.Vendor)})
}
