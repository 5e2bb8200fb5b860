package presentation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
)

func TestTheNamesOfGPUSoftwareAreKnownFromThoseOfOtherPlugins(t *testing.T) {
	gpu := []corev1.ResourceName{
		"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.24gb.me.all", "nvidia.com/mig-3g.40gb.shared", "nvidia.com/pgpu", "nvidia.com/nvswitch",
		"nvidia.com/GH100_H100_NVSWITCH", "nvidia.com/GA102GL_A10", "nvidia.com/TU104GL_TESLA_T4", "nvidia.com/AD102GL_L40S", "nvidia.com/3182", "nvidia.com/2bb9",
		"nvidia.com/NVIDIA_A10-12Q", "nvidia.com/GRID_T4-1Q", "amd.com/gpu", "amd.com/cpx_nps4", "amd.com/spx_nps1", "amd.com/dpx_nps2",
		"gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi", "example.com/gaudi",
	}
	for _, m := range catalogue.Models() {
		if m.Vendor != v1alpha1.VendorNVIDIA {
			continue
		}
		names, unlisted := m.KubeVirtResourceNames()
		for _, name := range append(names, unlisted...) {
			gpu = append(gpu, corev1.ResourceName("nvidia.com/"+name))
		}
	}
	for _, name := range gpu {
		if !IsAdvertisedByGPUSoftware(name) {
			t.Errorf("%s is taken for another plugin's", name)
		}
	}
	for _, name := range []corev1.ResourceName{
		"nvidia.com/hostdev", "nvidia.com/sriov_rdma", "nvidia.com/sriov-net-a", "nvidia.com/rdma_shared_device_a", "nvidia.com/mlnxnics", "nvidia.com/cx7", "nvidia.com/CX7_P0", "nvidia.com/bf3_p0_vfs",
		"nvidia.com/BF3", "nvidia.com/ens1f0np0", "nvidia.com/resibp26s0", "nvidia.com/gpudirect_nic", "nvidia.com/gpu_nic", "nvidia.com/MT2910_FAMILY_CONNECTX_7", "nvidia.com/migration", "nvidia.com/rail0", "nvidia.com/beef",
		"amd.com/nic", "amd.com/vnic", "amd.com/pollara", "amd.com/xilinx_u30", "amd.com/pensando_nps",
	} {
		if IsAdvertisedByGPUSoftware(name) {
			t.Errorf("%s is taken for a GPU", name)
		}
	}
}
