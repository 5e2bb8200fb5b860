package nvidia

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/gpumode"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// ExpectedResource returns a resource that NVIDIA's device plugin advertises. The hint says what to look at on the node when the
// plugin's pod runs.
func ExpectedResource(name corev1.ResourceName, count int, hint string) v1alpha1.ExpectedResource {
	return v1alpha1.ExpectedResource{
		Name: name, Quantity: *resource.NewQuantity(int64(count), resource.DecimalSI), Waits: true,
		Hint: "is the NVIDIA device plugin's pod on the node, and does it tolerate the gate? On the node: " + hint + "; journalctl -u " + gpumode.UnitName,
	}
}

// ExpectedGPULabels returns the labels that feature discovery sets for GPUs that are not partitioned. They are judged where
// feature discovery runs.
func ExpectedGPULabels(model catalogue.Model, count int32) []v1alpha1.ExpectedLabel {
	const hint = "the GPUs are not those that were ordered. On the node: nvidia-smi -L"
	return []v1alpha1.ExpectedLabel{
		{Check: "label/" + wellknown.LabelGPUFamily, Key: wellknown.LabelGPUFamily, Value: string(model.Architecture), Hint: hint},
		{Check: "label/" + wellknown.LabelGPUCount, Key: wellknown.LabelGPUCount, Value: strconv.Itoa(int(count)), Hint: hint},
	}
}

// ExpectedGPUs returns the resource that the device plugin advertises for GPUs that are not partitioned.
func ExpectedGPUs(count int) v1alpha1.ExpectedResource {
	return ExpectedResource(wellknown.NVIDIAGPU, count, "nvidia-smi -L; journalctl -k | grep -i xid")
}

// maxReplicas is the largest number of pods that share a GPU, as MPS and the API have it.
const maxReplicas = 48

// sharingNames has for each strategy its member of the plugin's configuration, and its value in the label by which feature
// discovery reports it.
var sharingNames = map[string][2]string{spec.SharingTimeSlicing: {"timeSlicing", "time-slicing"}, spec.SharingMPS: {"mps", "mps"}}

// AddSharing changes the plan so that several pods can use one GPU: the device plugin advertises every GPU as many times as the
// NodeType says.
func AddSharing(p *v1alpha1.NodePlan, sharing *v1alpha1.SharingSpec) error {
	if sharing == nil {
		return nil
	}
	names, known := sharingNames[sharing.Strategy]
	if !known {
		return spec.Invalid(spec.PresentationField("passthrough.sharing.strategy"), "sharing/strategy", "%q is not one of TimeSlicing, MPS", sharing.Strategy)
	}
	if sharing.Replicas < 2 || sharing.Replicas > maxReplicas {
		return spec.Invalid(spec.PresentationField("passthrough.sharing.replicas"), "sharing/replicas", "it is %d, and a shared GPU has 2 to %d", sharing.Replicas, maxReplicas)
	}
	for i, r := range p.Expectation.Resources {
		p.Expectation.Resources[i].Quantity = *resource.NewQuantity(r.Quantity.Value()*int64(sharing.Replicas), resource.DecimalSI)
	}
	content := fmt.Sprintf("version: v1\nsharing:\n  %s:\n    renameByDefault: false\n    resources:\n    - name: %s\n      replicas: %d\n", names[0], wellknown.NVIDIAGPU, sharing.Replicas)
	config := &v1alpha1.SoftwareConfiguration{Name: fmt.Sprintf("ingot-%s-%d", names[1], sharing.Replicas), Content: content}
	if p.NodeLabels == nil {
		p.NodeLabels = map[string]string{}
	}
	p.NodeLabels[wellknown.LabelDevicePluginConfig] = config.Name
	p.Tenant.PluginConfig = config
	hint := "feature discovery, and so the device plugin, reads another configuration than the node's label " + wellknown.LabelDevicePluginConfig + " names: " + config.Name
	p.Expectation.Labels = append(p.Expectation.Labels,
		v1alpha1.ExpectedLabel{Check: "software/gpu-sharing", Key: wellknown.LabelSharingStrategy, Value: names[1], Hint: hint},
		v1alpha1.ExpectedLabel{Check: "label/" + wellknown.LabelGPUReplicas, Key: wellknown.LabelGPUReplicas, Value: strconv.Itoa(int(sharing.Replicas)), Hint: hint},
	)
	return nil
}
