package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Request asks how the GPUs of a node are presented.
type Request struct {
	// GPU as in the NodeType; nil: a node without GPUs.
	GPU *v1alpha1.GPUSpec
	// Image is what is baked into the operating system.
	Image v1alpha1.OSImageSpec
	// Resources that the NodeType declares. A NodeTypeRendering is made without them, since they are applied in place.
	Resources corev1.ResourceList
}

// What a NodeTypeRendering keeps is what a mode makes: the types are those of the API, under short names.
type (
	// Plan is what the operating system must be told, and what the node must then advertise.
	Plan = v1alpha1.NodePlan
	// Modules of the kernel.
	Modules = v1alpha1.KernelModules
	// File is a file of the node.
	File = v1alpha1.NodeFile
	// SecretFile is a file of the node whose content is a key of a Secret.
	SecretFile = v1alpha1.NodeSecretFile
	// Unit is a systemd unit that is enabled and started.
	Unit = v1alpha1.SystemdUnit
	// Warning is something that was accepted and is not certain, such as what a vendor calls alpha.
	Warning = v1alpha1.PlanWarning
	// Tenant is what the vendor's software in a tenant's cluster must be told.
	Tenant = v1alpha1.TenantSoftware
	// Configuration is one of several that a tenant's software knows by name.
	Configuration = v1alpha1.SoftwareConfiguration
	// HostDevice is an entry of KubeVirt's permittedHostDevices.
	HostDevice = v1alpha1.PermittedHostDevice
	// Expectation is everything that a node must show before it is admitted.
	Expectation = v1alpha1.NodeExpectation
	// Resource is a resource that a node must advertise.
	Resource = v1alpha1.ExpectedResource
	// Label is a label that a vendor's software sets to tell what it found.
	Label = v1alpha1.ExpectedLabel
	// SliceExpectation is what one DRA driver must publish for a node.
	SliceExpectation = v1alpha1.ExpectedSlices
	// DeviceClassExpectation is a DeviceClass that claims name.
	DeviceClassExpectation = v1alpha1.ExpectedDeviceClass
	// DeviceExpectation is so many devices of one kind.
	DeviceExpectation = v1alpha1.ExpectedDevices
)

// Refusal says why a presentation is impossible. It is found before a machine is touched.
type Refusal struct {
	// Field that has to be changed, in the NodeType or in the OSImage.
	Field Field
	// Reason is the NodeType's condition reason.
	Reason string
	// Rule names the rule that was broken, such as passthrough/driver-version.
	Rule string
	// Message says of the field what was expected, what was found, and what would fit. It does not name the field itself.
	Message string
}

// Error says the field, the message and the rule.
func (r *Refusal) Error() string {
	return r.Field.String() + ": " + r.Message + " (rule " + r.Rule + ")"
}
