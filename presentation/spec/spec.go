package spec

import (
	"crypto/sha256"
	"encoding/hex"

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
