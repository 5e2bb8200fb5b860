package requests

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// H100 returns a valid request for eight unpartitioned H100 GPUs with the driver in the image.
func H100() spec.Request {
	return spec.Request{
		GPU: &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "H100-SXM5-80GB", Count: 8,
			Driver: v1alpha1.GPUDriver{Source: v1alpha1.DriverFromImage}, Presentation: v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough}},
		Image: v1alpha1.OSImageSpec{
			OS: v1alpha1.OSImageOS{ID: "debian", Version: "13", Kernel: "6.12.107"}, KernelArguments: []string{"quiet", "modprobe.blacklist=nouveau"},
			Software: v1alpha1.OSImageSoftware{Kubelet: "1.37.0", ContainerToolkit: "1.18.0",
				GPUDriver: &v1alpha1.GPUDriverSoftware{Vendor: v1alpha1.VendorNVIDIA, Version: "550.163.01", KernelModule: "Open"}},
		},
		Resources: corev1.ResourceList{"cpu": resource.MustParse("96"), "memory": resource.MustParse("768Gi"), "hugepages-1Gi": resource.MustParse("4Gi"), "rdma/hca": resource.MustParse("8")},
	}
}

// ForModel returns a request for a model of the catalogue, with a driver that supports it.
func ForModel(m catalogue.Model) spec.Request {
	r := H100()
	r.GPU.Vendor, r.GPU.Model, r.Image.Software.GPUDriver.Vendor = m.Vendor, m.Name, m.Vendor
	r.Image.Software.GPUDriver.Version = "595.91.07"
	return r
}

// UseOperatorDriver changes the request so that the vendor's operator installs the driver.
func UseOperatorDriver(r *spec.Request, version string) {
	r.GPU.Driver = v1alpha1.GPUDriver{Source: v1alpha1.DriverFromOperator, Version: version}
	r.Image.Software.GPUDriver, r.Image.Software.ContainerToolkit, r.Image.Software.MIGParted = nil, "", ""
}

// All returns every request by name. The golden files of presentation and of tenantsoftware have these names.
func All() map[string]spec.Request {
	plain := H100()
	plain.GPU = nil
	pcie := H100()
	pcie.GPU.Model = "H100-NVL-94GB"
	four := H100()
	four.GPU.Model, four.GPU.Count = "A100-SXM4-40GB", 4
	out := map[string]spec.Request{"no-gpu": plain, "h100-sxm-8": H100(), "h100-nvl-8": pcie, "a100-sxm-4": four, "h100-dra": H100WithDRA()}
	for _, more := range []map[string]spec.Request{MIGRequests(), driverRequests(), vmRequests(), amdRequests(), vgpuRequests(), genericRequests()} {
		maps.Copy(out, more)
	}
	return out
}
