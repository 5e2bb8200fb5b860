package nvidia

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/presentation/plan"
)

// ResourceGPU is what the device plugin advertises whole GPUs as, and with MIG strategy single also instances.
const ResourceGPU corev1.ResourceName = "nvidia.com/gpu"

// Advertised is a resource of the device plugin's. The hint is what to look at beside its pod.
func Advertised(name corev1.ResourceName, count int, hint string) plan.Resource {
	return plan.Resource{
		Name: name, Quantity: *resource.NewQuantity(int64(count), resource.DecimalSI), Waits: true,
		Hint: "is the NVIDIA device plugin's pod on the node, and does it tolerate the gate? On the node: " + hint + "; journalctl -u " + ModeUnit,
	}
}

// WholeGPUs is what the device plugin advertises of GPUs that are not partitioned.
func WholeGPUs(count int) plan.Resource {
	return Advertised(ResourceGPU, count, "nvidia-smi -L; journalctl -k | grep -i xid")
}
