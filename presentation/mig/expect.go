package mig

import (
	"strconv"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/dra"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// total counts the instances of each profile on the node, and the GPUs that are whole.
func (c *cutting) total() (instances []int, whole int) {
	instances = make([]int, len(c.names))
	for _, want := range c.gpus {
		if want == nil {
			whole++
		}
		for i, n := range want {
			instances[i] += n
		}
	}
	return instances, whole
}

// resources that the device plugin advertises.
func (c *cutting) resources(strategy string) []v1alpha1.ExpectedResource {
	hint := "nvidia-smi mig -lgi; the plugin's MIG_STRATEGY must be " + strategy
	if strategy == wellknown.MIGStrategySingle {
		return []v1alpha1.ExpectedResource{nvidia.Advertised(wellknown.NVIDIAGPU, c.instances(), hint)}
	}
	var out []v1alpha1.ExpectedResource
	instances, whole := c.total()
	if whole > 0 {
		out = append(out, nvidia.WholeGPUs(whole))
	}
	for i, n := range instances {
		if n > 0 {
			out = append(out, nvidia.Advertised(ResourceName(c.names[i]), n, hint))
		}
	}
	return out
}

// labels that GPU feature discovery sets, where it runs.
func (c *cutting) labels(strategy string) []v1alpha1.ExpectedLabel {
	if strategy == wellknown.MIGStrategyNone {
		return nil
	}
	out := []v1alpha1.ExpectedLabel{{
		Check: "software/mig-strategy", Key: wellknown.LabelMIGStrategy, Value: strategy,
		Hint: "feature discovery runs with another strategy than the NodeType's mig.strategy: its MIG_STRATEGY, and the device plugin's, must be " + strategy,
	}}
	count := func(key string, n int) {
		out = append(out, v1alpha1.ExpectedLabel{
			Check: "label/" + key, Key: key, Value: strconv.Itoa(n),
			Hint: "the GPUs are partitioned otherwise than ordered. On the node: nvidia-smi mig -lgi; journalctl -u " + nvidia.ModeUnit,
		})
	}
	if strategy == wellknown.MIGStrategySingle {
		count(wellknown.LabelGPUCount, c.instances())
		return out
	}
	instances, _ := c.total()
	for i, n := range instances {
		if n > 0 {
			count(string(ResourceName(c.names[i]))+".count", n)
		}
	}
	return out
}

// kinds of devices that the DRA driver publishes. A partitioned GPU is not published beside its instances.
func (c *cutting) kinds() []dra.Kind {
	var out []dra.Kind
	instances, whole := c.total()
	if whole > 0 {
		out = append(out, dra.GPUs(whole))
	}
	for i, n := range instances {
		if n > 0 {
			out = append(out, dra.Instances(c.variants[i], n))
		}
	}
	return out
}
