package dra

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// gatesSince has for each feature gate of the driver the oldest of the releases below that knows it (pkg/featuregates of the releases 0.4.1 and
// 0.5.0). DRAListTypeAttributes says 0.4 of itself there, and 0.4.1 does not have it.
var gatesSince = map[string]string{
	wellknown.GateComputeDomainCliques: wellknown.NVIDIADRARelease041, wellknown.GateCrashOnFabricErrors: wellknown.NVIDIADRARelease041, wellknown.GateDeviceMetadata: wellknown.NVIDIADRARelease041, wellknown.GateDynamicMIG: wellknown.NVIDIADRARelease041,
	wellknown.GateIMEXDaemonsWithDNSNames: wellknown.NVIDIADRARelease041, wellknown.GateMPS: wellknown.NVIDIADRARelease041, wellknown.GateDeviceHealthCheck: wellknown.NVIDIADRARelease041, wellknown.GatePassthrough: wellknown.NVIDIADRARelease041, wellknown.GateTimeSlicing: wellknown.NVIDIADRARelease041,
	wellknown.GateConsumableShares: wellknown.NVIDIADRARelease050, wellknown.GateDRAListTypeAttributes: wellknown.NVIDIADRARelease050, wellknown.GateFabricManagerPartitioning: wellknown.NVIDIADRARelease050, wellknown.GateHostManagedIMEX: wellknown.NVIDIADRARelease050,
}

// releases of the driver whose feature gates are known, from the oldest.
var releases = []string{wellknown.NVIDIADRARelease041, wellknown.NVIDIADRARelease050}

// exclusiveGates are pairs of gates with which the driver does not start.
var exclusiveGates = [][2]string{
	{wellknown.GateDynamicMIG, wellknown.GatePassthrough}, {wellknown.GateDynamicMIG, wellknown.GateDeviceHealthCheck}, {wellknown.GateDynamicMIG, wellknown.GateMPS},
	{wellknown.GatePassthrough, wellknown.GateDeviceHealthCheck},
}

// FeatureGates returns the feature gates with which the driver must run: those of the NodeType, and those that other fields need.
// The error is a *spec.Refusal.
func FeatureGates(r spec.Request, draSpec v1alpha1.DRASpec) ([]string, error) {
	if draSpec.Driver != "" && draSpec.Driver != wellknown.NVIDIADRADriver {
		return nil, spec.Invalid(spec.PresentationField("dra.driver"), "dra/driver", "it is %s, and GPUs of vendor %s are published by %s: correct it, or leave it out", draSpec.Driver, r.GPU.Vendor, wellknown.NVIDIADRADriver)
	}
	enabled := gateReasons{}
	for _, gate := range draSpec.FeatureGates {
		if gatesSince[gate] == "" {
			return nil, spec.Invalid(featureGatesField, "dra/feature-gate", "it has %s, which the driver does not: it has %s", gate, strings.Join(slices.Sorted(maps.Keys(gatesSince)), ", "))
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
	if err := enabled.checkRelease(draSpec.DriverRelease); err != nil {
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

// checkRelease refuses a release that is not known, and feature gates that the release does not have. The driver does not start with them.
func (enabled gateReasons) checkRelease(release string) error {
	release = cmp.Or(release, wellknown.NVIDIADRARelease)
	if !slices.Contains(releases, release) {
		return spec.Invalid(spec.PresentationField("dra.driverRelease"), "dra/release", "it is %q, and feature gates are known of %s", release, strings.Join(releases, ", "))
	}
	for _, gate := range slices.Sorted(maps.Keys(enabled)) {
		if older, _ := spec.IsOlderVersion(release, gatesSince[gate]); older {
			return spec.Invalid(enabled[gate].field, "dra/gate-release", "%s the feature gate %s, which release %s of the driver lacks and %s has: set dra.driverRelease: \"%s\", or leave it out", enabled[gate].subject, gate, release, gatesSince[gate], gatesSince[gate])
		}
	}
	return nil
}

// SetTenantDriver changes the plan so that the tenant's driver runs with the feature gates, in the release that the NodeType orders.
func SetTenantDriver(p *v1alpha1.NodePlan, draSpec v1alpha1.DRASpec, gates []string) {
	p.Tenant.FeatureGates = gates
	if draSpec.DriverRelease != wellknown.NVIDIADRARelease {
		p.Tenant.DRARelease = draSpec.DriverRelease
	}
	for _, gate := range gates {
		if w, needsMore := gateWarnings[gate]; needsMore {
			p.Warnings = append(p.Warnings, w)
		}
	}
}

// gateWarnings say what a feature gate needs that this plan does not bring (the comments of pkg/featuregates, release 0.5.0).
var gateWarnings = map[string]v1alpha1.PlanWarning{
	wellknown.GateDRAListTypeAttributes: {Rule: "gate/list-attributes", Message: "the tenant's kube-apiserver must have its own feature gate DRAListTypeAttributes, which is off by default up to Kubernetes 1.37: " +
		"without it the API server rejects each ResourceSlice of the driver, and the node is not admitted"},
	wellknown.GateFabricManagerPartitioning: {Rule: "gate/fabric-partitions", Message: "the node needs a fabric manager with FABRIC_MODE=1 and its library libnvfm, which the image or the operator's driver must bring: " +
		"without them the driver does not start; a claim is prepared only if its GPUs are exactly one partition, so let it match on the attribute partitionN"},
	wellknown.GateConsumableShares: {Rule: "gate/consumable-shares", Message: "the driver runs with consumableShares: memory: claims that request memory share a GPU, and one that does not takes all of it"},
}

// check refuses combinations of gates with which the driver does not start.
func (enabled gateReasons) check() error {
	if enabled.hasGate(wellknown.GateDeviceMetadata) && !enabled.hasGate(wellknown.GatePassthrough) {
		return spec.Invalid(featureGatesField, "dra/gate-needs", "it has %s, and the driver only starts with it beside %s: add that, or choose dra.devices: VFIO", wellknown.GateDeviceMetadata, wellknown.GatePassthrough)
	}
	if enabled.hasGate(wellknown.GateConsumableShares) && enabled.hasGate(wellknown.GateMPS) {
		return spec.Invalid(enabled[wellknown.GateMPS].field, "dra/gates-exclude", "%s the feature gate %s, and claims cannot share a device by MPS beside %s: give one of them up", enabled[wellknown.GateMPS].subject, wellknown.GateMPS, wellknown.GateConsumableShares)
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
