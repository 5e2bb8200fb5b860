package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Request asks how the GPUs of a node are presented.
type Request struct {
	// GPU is the NodeType's spec.gpu; nil: a node without GPUs.
	GPU *v1alpha1.GPUSpec
	// Image says what is baked into the operating system.
	Image v1alpha1.OSImageSpec
	// Resources are those that the NodeType declares. A NodeTypeRendering is made without them, because they are applied in place.
	Resources corev1.ResourceList
}

// Values of NodeType and OSImage fields for which package v1alpha1 has no constants.
const (
	// Values of sharing.strategy.
	SharingTimeSlicing = "TimeSlicing"
	SharingMPS         = "MPS"

	// IMEXHost is the value of gpu.imex with which a service of the image runs IMEX.
	IMEXHost = "Host"

	// Values of dra.devices.
	DRADevicesGPU  = "GPU"
	DRADevicesMIG  = "MIG"
	DRADevicesVFIO = "VFIO"

	// Values of vgpu.role.
	VGPURoleHost  = "Host"
	VGPURoleGuest = "Guest"

	// Values of vgpu.framework.
	VGPUFrameworkMdev       = "Mdev"
	VGPUFrameworkVendorVFIO = "VendorVFIO"

	// Values of kernelModule of a GPU driver.
	KernelModuleOpen        = "Open"
	KernelModuleProprietary = "Proprietary"

	// Values of the OSImage's software.gpuDriver.kind.
	DriverKindGPU         = "GPU"
	DriverKindVGPUManager = "VGPUManager"
	DriverKindVGPUGuest   = "VGPUGuest"
)

// ConfigurationName returns a name for a configuration that follows from its content: NodeTypes with equal configurations
// share one name in a tenant's cluster, and others never collide.
func ConfigurationName(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "ingot-" + hex.EncodeToString(sum[:5])
}

// Refusal says why a presentation is impossible. It is found before a machine is touched.
type Refusal struct {
	// Field that has to be changed, in the NodeType or in the OSImage.
	Field Field
	// Reason is the NodeType's condition reason.
	Reason string
	// Rule names the rule that was broken, such as passthrough/driver-version.
	Rule string
	// Message says what was expected of the field, what was found, and what would fit. It does not name the field.
	Message string
}

// Error returns the field, the message and the rule.
func (r *Refusal) Error() string {
	return r.Field.String() + ": " + r.Message + " (rule " + r.Rule + ")"
}

// Refuse returns a *Refusal with a formatted message.
func Refuse(field Field, reason, rule, format string, args ...any) error {
	return &Refusal{Field: field, Reason: reason, Rule: rule, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns a *Refusal with the reason PresentationInvalid, for rules whose NodeType condition has no reason of its own.
func Invalid(field Field, rule, format string, args ...any) error {
	return Refuse(field, v1alpha1.ReasonPresentationInvalid, rule, format, args...)
}

// RequireVersion refuses a version that is none, or is older than the minimum. why says what needs it.
func RequireVersion(field Field, rule, version, minimum, why string) error {
	older, ok := IsOlderVersion(version, minimum)
	if !ok {
		return Invalid(field, rule, "it is %q, and must be a version, %s or newer: %s", version, minimum, why)
	}
	if older {
		return Invalid(field, rule, "it is %s, and %s or newer is needed: %s", version, minimum, why)
	}
	return nil
}

// Field is a field of a NodeType or of an OSImage, set or not.
type Field struct {
	// Kind of the object: KindNodeType or KindOSImage.
	Kind string
	// Path in the object: spec.gpu.presentation.mig.layout[0].profiles.
	Path string
}

// Kinds of objects that have fields.
const (
	KindNodeType = "NodeType"
	KindOSImage  = "OSImage"
)

// GPUField returns a field of the NodeType's spec.gpu, such as driver.source; an empty path is spec.gpu.
func GPUField(path string) Field { return Field{KindNodeType, pathBelow("spec.gpu", path)} }

// PresentationField returns a field of the NodeType's spec.gpu.presentation, such as mig.layout[0].profiles.
func PresentationField(path string) Field {
	return Field{KindNodeType, pathBelow("spec.gpu.presentation", path)}
}

// ResourceField returns the quantity of the named resource in the NodeType's spec.resources.
func ResourceField(name string) Field { return Field{KindNodeType, "spec.resources[" + name + "]"} }

// ImageField returns a field of the OSImage's spec, such as software.containerd.
func ImageField(path string) Field { return Field{KindOSImage, pathBelow("spec", path)} }

// DriverField returns a field of the GPU driver, such as version. When the driver is baked into the image the field is in the
// OSImage, otherwise in the NodeType.
func DriverField(source v1alpha1.DriverSource, path string) Field {
	if source == "" || source == v1alpha1.DriverFromImage {
		return ImageField("software.gpuDriver." + path)
	}
	return GPUField("driver." + path)
}

func pathBelow(parent, path string) string {
	if path == "" {
		return parent
	}
	return parent + "." + path
}

// IsInOSImage reports whether the field belongs to the OSImage. Every other field belongs to the NodeType.
func (f Field) IsInOSImage() bool { return f.Kind == KindOSImage }

// String returns the path. A field of the OSImage is named with its kind, because the reader looks at a NodeType.
func (f Field) String() string {
	if f.IsInOSImage() {
		return "the OSImage's " + f.Path
	}
	return f.Path
}
