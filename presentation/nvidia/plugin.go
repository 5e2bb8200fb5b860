package nvidia

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// Advertised is a resource of the device plugin's. The hint is what to look at beside its pod.
func Advertised(name corev1.ResourceName, count int, hint string) v1alpha1.ExpectedResource {
	return v1alpha1.ExpectedResource{
		Name: name, Quantity: *resource.NewQuantity(int64(count), resource.DecimalSI), Waits: true,
		Hint: "is the NVIDIA device plugin's pod on the node, and does it tolerate the gate? On the node: " + hint + "; journalctl -u " + ModeUnit,
	}
}

// Discovered are the labels that feature discovery sets of whole GPUs, where it runs.
func Discovered(model catalogue.Model, count int32) []v1alpha1.ExpectedLabel {
	const hint = "the GPUs are not those that were ordered. On the node: nvidia-smi -L"
	return []v1alpha1.ExpectedLabel{
		{Check: "label/" + wellknown.LabelGPUFamily, Key: wellknown.LabelGPUFamily, Value: string(model.Architecture), Hint: hint},
		{Check: "label/" + wellknown.LabelGPUCount, Key: wellknown.LabelGPUCount, Value: strconv.Itoa(int(count)), Hint: hint},
	}
}

// WholeGPUs is what the device plugin advertises of GPUs that are not partitioned.
func WholeGPUs(count int) v1alpha1.ExpectedResource {
	return Advertised(wellknown.NVIDIAGPU, count, "nvidia-smi -L; journalctl -k | grep -i xid")
}
