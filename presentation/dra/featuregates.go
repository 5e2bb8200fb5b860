package dra

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// featureGates are all feature gates of the driver.
var featureGates = []string{
	wellknown.GateComputeDomainCliques, wellknown.GateConsumableShares, wellknown.GateCrashOnFabricErrors, wellknown.GateDRAListTypeAttributes,
	wellknown.GateDeviceMetadata, wellknown.GateDynamicMIG, wellknown.GateFabricManagerPartitioning, wellknown.GateHostManagedIMEX,
	wellknown.GateIMEXDaemonsWithDNSNames, wellknown.GateMPS, wellknown.GateDeviceHealthCheck, wellknown.GatePassthrough, wellknown.GateTimeSlicing,
}

// exclusiveGates are pairs of gates with which the driver does not start.
var exclusiveGates = [][2]string{
	{wellknown.GateDynamicMIG, wellknown.GatePassthrough}, {wellknown.GateDynamicMIG, wellknown.GateDeviceHealthCheck}, {wellknown.GateDynamicMIG, wellknown.GateMPS},
	{wellknown.GatePassthrough, wellknown.GateDeviceHealthCheck}, {wellknown.GateConsumableShares, wellknown.GateMPS},
}

// FeatureGates returns the feature gates with which the driver must run: those of the NodeType, and those that other fields need.
// The error is a *spec.Refusal.
func FeatureGates(r spec.Request, draSpec v1alpha1.DRASpec) ([]string, error) {
	if draSpec.Driver != "" && draSpec.Driver != wellknown.NVIDIADRADriver {
		return nil, spec.Invalid(spec.PresentationField("dra.driver"), "dra/driver", "it is %s, and GPUs of vendor %s are published by %s: correct it, or leave it out", draSpec.Driver, r.GPU.Vendor, wellknown.NVIDIADRADriver)
	}
	enabled := gateReasons{}
	for _, gate := range draSpec.FeatureGates {
		if !slices.Contains(featureGates, gate) {
			return nil, spec.Invalid(featureGatesField, "dra/feature-gate", "it has %s, which the driver does not: it has %s", gate, strings.Join(featureGates, ", "))
		}
		enabled[gate] = gateReason{featureGatesField, "it has", "dra.featureGates has"}
	}
	if draSpec.Devices == spec.DRADevicesVFIO {
		enabled.add(gateReason{spec.PresentationField("dra.devices"), "VFIO needs", "dra.devices: VFIO needs"}, wellknown.GatePassthrough, wellknown.GateDeviceMetadata)
	}
	if r.GPU.IMEX == spec.IMEXHost {
		enabled.add(gateReason{spec.GPUField("imex"), "Host needs", "gpu.imex: Host needs"}, wellknown.GateHostManagedIMEX)
	}
	if err := addSharingGate(r, draSpec.Sharing, enabled); err != nil {
		return nil, err
	}
	if err := enabled.check(); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(enabled)), nil
}

var featureGatesField = spec.PresentationField("dra.featureGates")

// gateReason says why a feature gate is enabled.
type gateReason struct {
	// field that enables the gate.
	field spec.Field
	// subject begins a sentence about the field: VFIO needs. qualifiedSubject is the same with the name of the field:
	// dra.devices: VFIO needs.
	subject, qualifiedSubject string
}

// gateReasons has the reason of each feature gate that is enabled.
type gateReasons map[string]gateReason

func (enabled gateReasons) hasGate(gate string) bool {
	_, is := enabled[gate]
	return is
}

// add enables gates for a reason, unless they are enabled already.
func (enabled gateReasons) add(why gateReason, implied ...string) {
	for _, gate := range implied {
		if !enabled.hasGate(gate) {
			enabled[gate] = why
		}
	}
}

// check refuses combinations of gates with which the driver does not start.
func (enabled gateReasons) check() error {
	if enabled.hasGate(wellknown.GateDeviceMetadata) && !enabled.hasGate(wellknown.GatePassthrough) {
		return spec.Invalid(featureGatesField, "dra/gate-needs", "it has %s, and the driver only starts with it beside %s: add that, or choose dra.devices: VFIO", wellknown.GateDeviceMetadata, wellknown.GatePassthrough)
	}
	for _, pair := range exclusiveGates {
		if !enabled.hasGate(pair[0]) || !enabled.hasGate(pair[1]) {
			continue
		}
		first, second := enabled[pair[0]], enabled[pair[1]]
		gates := fmt.Sprintf("feature gate %s, %s %s", pair[0], second.qualifiedSubject, pair[1])
		if first == second {
			gates = fmt.Sprintf("feature gates %s and %s", pair[0], pair[1])
		}
		return spec.Invalid(first.field, "dra/gates-exclude", "%s the %s, and the driver does not start with both: give one of them up", first.subject, gates)
	}
	return nil
}

// addSharingGate enables the gate of the sharing strategy. Each claim says whether it shares a GPU, so the published devices stay
// the same.
func addSharingGate(r spec.Request, draSpec *v1alpha1.SharingSpec, enabled gateReasons) error {
	if draSpec == nil {
		return nil
	}
	strategy := "dra.sharing.strategy"
	if r.GPU.Presentation.DRA == nil {
		strategy = "passthrough.sharing.strategy"
	}
	gate, known := map[string]string{spec.SharingTimeSlicing: wellknown.GateTimeSlicing, spec.SharingMPS: wellknown.GateMPS}[draSpec.Strategy]
	if !known {
		return spec.Invalid(spec.PresentationField(strategy), "sharing/strategy", "%q is not one of TimeSlicing, MPS", draSpec.Strategy)
	}
	enabled.add(gateReason{spec.PresentationField(strategy), draSpec.Strategy + " needs", strategy + ": " + draSpec.Strategy + " needs"}, gate)
	return nil
}
