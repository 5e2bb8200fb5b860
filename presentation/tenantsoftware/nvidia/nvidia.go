package nvidia

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// chartRepository has the charts of the operator and of the DRA driver.
const chartRepository = "https://helm.ngc.nvidia.com/nvidia"

// tenant has a tenant's NodeTypes with NVIDIA GPUs by what advertises the GPUs, each list sorted by name. A NodeType is in one of
// the first three lists, and also in computeDomains where that applies.
type tenant struct {
	// devicePlugin: NVIDIA's device plugin advertises the GPUs to containers.
	devicePlugin []software.NodeType
	// draDriver: NVIDIA's DRA driver publishes the GPUs in ResourceSlices.
	draDriver []software.NodeType
	// virtualMachines: the GPUs are given to virtual machines of KubeVirt.
	virtualMachines []software.NodeType
	// computeDomains: compute domains of the DRA driver run IMEX, whatever advertises the GPUs.
	computeDomains []software.NodeType
	// hostIMEX: the DRA driver gives out the channels of IMEX that the hosts run.
	hostIMEX []software.NodeType
}

// Charts returns the charts of NVIDIA's software. The NodeTypes are sorted by name. The error can be a *software.Conflict.
func Charts(nodeTypes []software.NodeType) ([]software.Chart, error) {
	t, err := newTenant(nodeTypes)
	if err != nil {
		return nil, err
	}
	var out []software.Chart
	for _, charts := range []func() ([]software.Chart, error){t.operatorCharts, t.devicePluginCharts, t.draDriverCharts, t.kubeVirtCharts} {
		some, err := charts()
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// Components returns NVIDIA's software as plain objects; a component without objects is not needed. The NodeTypes are sorted by
// name. The error can be a *software.Conflict.
func Components(nodeTypes []software.NodeType) ([]software.Component, error) {
	t, err := newTenant(nodeTypes)
	if err != nil {
		return nil, err
	}
	var out []software.Component
	for _, component := range []func() (software.Component, error){t.operatorComponent, t.discoveryComponent, t.devicePluginComponent, t.draDriverComponent, t.kubeVirtComponent} {
		c, err := component()
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func newTenant(nodeTypes []software.NodeType) (tenant, error) {
	var t tenant
	for _, n := range nodeTypes {
		if n.GPU == nil || n.GPU.Vendor != v1alpha1.VendorNVIDIA {
			continue
		}
		model, err := catalogue.Lookup(n.GPU.Vendor, n.GPU.Model)
		if err != nil {
			return tenant{}, fmt.Errorf("NodeType %s: %w", n.Name, err)
		}
		switch {
		case len(n.Plan.Tenant.HostDevices) > 0:
			t.virtualMachines = append(t.virtualMachines, n)
			continue
		case n.HasSlices(wellknown.NVIDIADRADriver):
			t.draDriver = append(t.draDriver, n)
		default:
			t.devicePlugin = append(t.devicePlugin, n)
		}
		if model.Link == catalogue.LinkRack && n.GPU.IMEX != spec.IMEXHost {
			t.computeDomains = append(t.computeDomains, n)
		}
		if n.HasFeatureGate(wellknown.GateHostManagedIMEX) {
			t.hostIMEX = append(t.hostIMEX, n)
		}
	}
	return t, nil
}

// devicePluginRacks returns the NodeTypes with compute domains whose GPUs the device plugin advertises.
func (t tenant) devicePluginRacks() []software.NodeType {
	return software.Filter(t.computeDomains, func(n software.NodeType) bool { return !n.HasSlices(wellknown.NVIDIADRADriver) })
}

// containers returns the NodeTypes whose GPUs are given to containers.
func (t tenant) containers() []software.NodeType {
	return software.SortByName(slices.Concat(t.devicePlugin, t.draDriver))
}

// hasOperatorDriver reports whether NVIDIA's operator installs the driver of at least one NodeType. The operator then serves
// every node that has NVIDIA GPUs.
func (t tenant) hasOperatorDriver() bool {
	return slices.ContainsFunc(slices.Concat(t.devicePlugin, t.draDriver, t.virtualMachines), software.NodeType.HasOperatorDriver)
}

// needsOperator reports whether the operator must be among the charts. NVIDIA's KubeVirt device plugin has no chart of its own.
func (t tenant) needsOperator() bool {
	return t.hasOperatorDriver() || len(software.Filter(t.virtualMachines, needsKubeVirtDevicePlugin)) > 0
}

// tolerations returns the tolerations of NVIDIA's software.
func tolerations(nodeTypes []software.NodeType) []corev1.Toleration {
	return software.Tolerations(wellknown.NVIDIAGPU, nodeTypes)
}
