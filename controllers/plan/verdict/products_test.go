package verdict

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	productLabel = "nvidia.com/gpu.product"
	memoryLabel  = "nvidia.com/gpu.memory"
)

// expectProducts adds what a node with H100 SXM modules promises of their product.
func expectProducts(in *Input, suffixes ...string) {
	product := v1alpha1.ExpectedProduct{Words: []string{"H100"}, AbsentWords: []string{"NVL", "PCIE"}, Suffixes: suffixes}
	in.Expectation.LabelRules = []v1alpha1.ExpectedLabelRule{
		{Check: "label/" + productLabel, Key: productLabel, Product: &product, Hint: "look at nvidia-smi -L"},
		{Check: "label/" + memoryLabel, Key: memoryLabel, Range: &v1alpha1.ExpectedRange{Minimum: resource.MustParse("73728"), Maximum: resource.MustParse("81920")}, Hint: "look at nvidia-smi -L"},
	}
	for i := range in.Expectation.Slices {
		devices := &in.Expectation.Slices[i].Devices[0]
		delete(devices.Attributes, "productName")
		devices.Products = map[string]v1alpha1.ExpectedProduct{"productName": product}
		devices.Capacities = map[string]v1alpha1.ExpectedRange{"memory": {Minimum: resource.MustParse("72Gi"), Maximum: resource.MustParse("80Gi")}}
	}
}

func TestTheProductAndItsMemoryAreComparedInLabels(t *testing.T) {
	pass, wait, fail := v1alpha1.CheckPass, v1alpha1.CheckWait, v1alpha1.CheckFail
	for sentence, tt := range map[string]struct {
		suffixes       []string
		product        string
		memory         string
		change         func(*Input)
		productResult  v1alpha1.CheckResult
		memoryResult   v1alpha1.CheckResult
		verdictsResult v1alpha1.CheckResult
	}{
		"the product that was ordered":      {nil, "NVIDIA-H100-80GB-HBM3", "81559", nil, pass, pass, pass},
		"shared in time":                    {nil, "NVIDIA-H100-80GB-HBM3-SHARED", "81559", nil, pass, pass, pass},
		"the next product":                  {nil, "NVIDIA-H200", "143771", nil, fail, fail, fail},
		"mounted otherwise":                 {nil, "NVIDIA-H100-PCIe", "81559", nil, fail, pass, fail},
		"a word that only begins so":        {nil, "NVIDIA-H100X", "81559", nil, fail, pass, fail},
		"half the memory":                   {nil, "NVIDIA-H100-80GB-HBM3", "40960", nil, pass, fail, fail},
		"memory that is no number":          {nil, "NVIDIA-H100-80GB-HBM3", "a lot", nil, pass, fail, fail},
		"no value yet":                      {nil, "", "81559", nil, wait, pass, wait},
		"another product before the report": {nil, "NVIDIA-H200", "143771", notReady, wait, wait, wait},
		"instances as ordered":              {[]string{"-MIG-3g.40gb", "-MIG-3g.39gb"}, "NVIDIA-H100-80GB-HBM3-MIG-3g.39gb", "81559", nil, pass, pass, pass},
		"instances of another profile":      {[]string{"-MIG-3g.40gb"}, "NVIDIA-H100-80GB-HBM3-MIG-1g.20gb", "81559", nil, fail, pass, fail},
		"no instances":                      {[]string{"-MIG-3g.40gb"}, "NVIDIA-H100-80GB-HBM3", "81559", nil, fail, pass, fail},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := perfectInput()
			expectProducts(&in, tt.suffixes...)
			in.Node.Labels[productLabel], in.Node.Labels[memoryLabel] = tt.product, tt.memory
			if tt.change != nil {
				tt.change(&in)
			}
			d := Judge(in)
			for name, want := range map[string]v1alpha1.CheckResult{productLabel: tt.productResult, memoryLabel: tt.memoryResult} {
				if c := find(t, d, "label/"+name); c.Result != want || c.Expected == "" || want != pass && c.Hint == "" {
					t.Errorf("%+v, want %s", c, want)
				}
			}
			if d.Verdict.Result != tt.verdictsResult {
				t.Errorf("the verdict is %s, want %s", d.Verdict.Result, tt.verdictsResult)
			}
		})
	}
	t.Run("nothing runs that labels the node", func(t *testing.T) {
		in := perfectInput()
		expectProducts(&in)
		if d := Judge(in); d.Verdict.Result != pass {
			t.Errorf("the verdict is %s: %s", d.Verdict.Result, d.Message)
		}
	})
}

func TestTheProductAndItsMemoryAreComparedInDevices(t *testing.T) {
	const kind = "slices/gpu.nvidia.com/gpu"
	memory := func(in *Input, gpu int, name, quantity string) {
		capacity := in.Slices[0].Spec.Devices[gpu].Capacity
		delete(capacity, "memory")
		if quantity != "" {
			capacity[resourcev1.QualifiedName(name)] = resourcev1.DeviceCapacity{Value: resource.MustParse(quantity)}
		}
	}
	for sentence, tt := range map[string]struct {
		change   func(*Input)
		check    string
		result   v1alpha1.CheckResult
		observed string
	}{
		"as ordered":                     {func(*Input) {}, "productName", v1alpha1.CheckPass, "NVIDIA H100 80GB HBM3"},
		"memory as ordered":              {func(*Input) {}, "memory", v1alpha1.CheckPass, "81559Mi"},
		"one of the next product":        {func(in *Input) { attribute(in, 3, "productName", "NVIDIA H200") }, "productName", v1alpha1.CheckFail, "gpu-3: NVIDIA H200"},
		"no product":                     {func(in *Input) { delete(in.Slices[0].Spec.Devices[3].Attributes, "productName") }, "productName", v1alpha1.CheckWait, "gpu-3: no value"},
		"one with other memory":          {func(in *Input) { memory(in, 3, "memory", "143771Mi") }, "memory", v1alpha1.CheckFail, "gpu-3: 143771Mi"},
		"memory under the driver's name": {func(in *Input) { memory(in, 3, draDriver+"/memory", "40Gi") }, "memory", v1alpha1.CheckFail, "gpu-3: 40Gi"},
		"one that does not tell memory":  {func(in *Input) { memory(in, 3, "", "") }, "memory", v1alpha1.CheckWait, "gpu-3: no value"},
		"and never does":                 {func(in *Input) { memory(in, 3, "", ""); in.Deadline = start }, "memory", v1alpha1.CheckFail, "gpu-3: no value"},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := perfectDRAInput()
			expectProducts(&in)
			tt.change(&in)
			d := Judge(in)
			if c := find(t, d, kind+"/"+tt.check); c.Result != tt.result || c.Observed != tt.observed {
				t.Errorf("%+v, want %s with %q", c, tt.result, tt.observed)
			}
			if d.Verdict.Result != tt.result {
				t.Errorf("the verdict is %s, want %s", d.Verdict.Result, tt.result)
			}
		})
	}
}
