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
	// Resources promised by the NodeType.
	Resources corev1.ResourceList
}

// Plan is what the operating system must be told, and what the node must then advertise.
type Plan struct {
	// KernelArguments that the presentation needs, baked into the image or set by Ignition.
	KernelArguments []string
	// Modules of the kernel.
	Modules Modules
	// Packages to install at the first boot.
	Packages []string
	// Files to write before kubelet starts.
	Files []File
	// Units of systemd, in the order in which they are started.
	Units []Unit
	// SecretFiles are files whose content is a Secret's: it enters at the last step of rendering, and no plan holds it.
	SecretFiles []SecretFile
	// NodeLabels that kubelet registers with.
	NodeLabels map[string]string
	// Tenant is what the vendor's software in the tenant cluster must be told to agree with the node.
	Tenant Tenant
	// Warnings are what people must know although it was not refused.
	Warnings []Warning
	// Expectation is what the node must advertise.
	Expectation Expectation
}

// Modules of the kernel.
type Modules struct {
	// Load at every boot, in this order.
	Load []string
	// Blacklist is never loaded on its own.
	Blacklist []string
}

// File is a file of the node.
type File struct {
	// Path is absolute.
	Path string
	// Mode is its permissions in octal, 0644.
	Mode string
	// Content of the file.
	Content string
}

// SecretFile is a file of the node whose content is a key of a Secret.
type SecretFile struct {
	// Path is absolute.
	Path string
	// Mode is its permissions in octal, 0600.
	Mode string
	// Secret in the host namespace.
	Secret string
	// Key of the Secret.
	Key string
}

// Warning is something that was accepted and is not certain, such as what a vendor calls alpha.
type Warning struct {
	// Rule names it: experimental/dynamic-mig.
	Rule string
	// Message says what is uncertain and what to look at.
	Message string
}

// Unit is a systemd unit that is enabled and started.
type Unit struct {
	// Name with its suffix: ingot-gpu-mode.service.
	Name string
	// Content of the unit file; empty: the image has the unit.
	Content string
}

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
