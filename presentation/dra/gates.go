package dra

import (
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/plan"
)

// Feature gates of the driver that change what is published.
const (
	GateDynamicMIG   = "DynamicMIG"
	GatePassthrough  = "PassthroughSupport"
	gateTimeSlicing  = "TimeSlicingSettings"
	gateMPS          = "MPSSupport"
	gateHealth       = "NVMLDeviceHealthCheck"
	gateMetadata     = "DeviceMetadata"
	gateConsumable   = "ConsumableShares"
	gateHostIMEX     = "HostManagedIMEXDaemon"
	deviceVFIO       = "VFIO"
	experimentalGate = "experimental/dynamic-mig"
)

// gates that the driver has (its pkg/featuregates).
var gates = []string{
	"ComputeDomainCliques", gateConsumable, "CrashOnNVLinkFabricErrors", "DRAListTypeAttributes", gateMetadata, GateDynamicMIG,
	"FabricManagerPartitioning", gateHostIMEX, "IMEXDaemonsWithDNSNames", gateMPS, gateHealth, GatePassthrough, gateTimeSlicing,
}

// exclusions are gates that the driver does not start with together.
var exclusions = [][2]string{
	{GateDynamicMIG, GatePassthrough}, {GateDynamicMIG, gateHealth}, {GateDynamicMIG, gateMPS},
	{GatePassthrough, gateHealth}, {gateConsumable, gateMPS},
}

// Gates are the feature gates that the driver must run with: those of the spec, and those that follow from it. The error
// is a *plan.Refusal.
func Gates(r plan.Request, spec v1alpha1.DRASpec) ([]string, error) {
	if spec.Driver != "" && spec.Driver != Driver {
		return nil, refuse("dra/driver", "dra.driver is %s, and GPUs of vendor %s are published by %s: correct it, or leave it out", spec.Driver, r.GPU.Vendor, Driver)
	}
	on := reasons{}
	for _, gate := range spec.FeatureGates {
		if !slices.Contains(gates, gate) {
			return nil, refuse("dra/feature-gate", "dra.featureGates has %s, which the driver does not: it has %s", gate, strings.Join(gates, ", "))
		}
		on[gate] = "dra.featureGates has"
	}
	if spec.Devices == deviceVFIO {
		on.need("dra.devices: VFIO", GatePassthrough, gateMetadata)
	}
	if r.GPU.IMEX == nvidia.IMEXHost {
		on.need("gpu.imex: Host", gateHostIMEX)
	}
	if err := sharing(spec.Sharing, on); err != nil {
		return nil, err
	}
	if err := on.judge(); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(on)), nil
}

// reasons say of each feature gate that is on why it is, as the beginning of a sentence.
type reasons map[string]string

// need turns gates on for a reason, unless they are on already.
func (on reasons) need(why string, implied ...string) {
	for _, gate := range implied {
		if on[gate] == "" {
			on[gate] = why + " needs"
		}
	}
}

// judge refuses gates with which the driver does not start.
func (on reasons) judge() error {
	if on[gateMetadata] != "" && on[GatePassthrough] == "" {
		return refuse("dra/gate-needs", "dra.featureGates has %s, and the driver only starts with it beside %s: add that, or choose dra.devices: VFIO", gateMetadata, GatePassthrough)
	}
	for _, pair := range exclusions {
		if on[pair[0]] != "" && on[pair[1]] != "" {
			return refuse("dra/gates-exclude", "%s the feature gate %s, %s %s, and the driver does not start with both: give one of them up", on[pair[0]], pair[0], on[pair[1]], pair[1])
		}
	}
	return nil
}

// sharing is a matter of each claim: the driver publishes the same devices, and must be able to.
func sharing(spec *v1alpha1.SharingSpec, on reasons) error {
	if spec == nil {
		return nil
	}
	gate, known := map[string]string{nvidia.TimeSlicing: gateTimeSlicing, nvidia.MPS: gateMPS}[spec.Strategy]
	if !known {
		return refuse("sharing/strategy", "dra.sharing.strategy %q is not one of TimeSlicing, MPS", spec.Strategy)
	}
	on.need("dra.sharing.strategy: "+spec.Strategy, gate)
	return nil
}
