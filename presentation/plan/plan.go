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
	// NodeLabels that kubelet registers with.
	NodeLabels map[string]string
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

// Unit is a systemd unit that is enabled and started.
type Unit struct {
	// Name with its suffix: ingot-gpu-mode.service.
	Name string
	// Content of the unit file; empty: the image has the unit.
	Content string
}

// Refusal says why a presentation is impossible. It is found before a machine is touched.
type Refusal struct {
	// Reason is the NodeType's condition reason.
	Reason string
	// Rule names the rule that was broken, such as passthrough/driver-version.
	Rule string
	// Message says what was expected, what was found, and what would fit.
	Message string
}

// Error says the message and the rule.
func (r *Refusal) Error() string { return r.Message + " (rule " + r.Rule + ")" }
