package clusterapi

import (
	"cmp"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// keepHost keeps a BareMetalHost as it is, and says what keeps a Machine from claiming it, or its baremetal-operator from cleaning it.
func (c *converter) keepHost(m offline.Manifest) {
	spec := conversion.ValueAt[map[string]any](m.Object, "spec")
	if by := conversion.ValueAt[map[string]any](spec, "consumerRef"); by != nil {
		kind, release := cmp.Or(conversion.ValueAt[string](by, "kind"), "an object"), "release it there"
		if kind == "Metal3Machine" {
			release = "scale its MachineDeployment down"
		}
		c.AddFinding(m, "spec.consumerRef", conversion.RuleCheck,
			"%s %s holds it: %s, and when the baremetal-operator has made the host available, a Machine of Ingot's can claim it",
			kind, conversion.ValueAt[string](by, "name"), release)
	} else {
		c.reportOwnImage(m, spec)
	}
	if conversion.ValueAt[bool](spec, "externallyProvisioned") {
		c.AddFinding(m, "spec.externallyProvisioned", conversion.RuleLost, "a host that something else installed is never claimed")
	}
	if conversion.ValueAt[bool](spec, "disablePowerOff") {
		c.AddFinding(m, "spec.disablePowerOff", conversion.RuleLost, "a host that is never powered off is passed over: a roll and a release power it off before they touch its disks")
	}
	if conversion.ValueAt[string](spec, "automatedCleaningMode") == string(metal3.CleaningModeDisabled) {
		c.AddFinding(m, "spec.automatedCleaningMode", conversion.RuleCheck,
			"it is never cleaned for Ingot, whatever the NodeProvider says, and stays with its first tenant. Cluster API writes the mode of a Metal3MachineTemplate onto hosts: set it to metadata unless its disks must be kept")
	}
	c.reportHostAnnotations(m)
}

// reportOwnImage adds a finding for what a person has had installed on a host that nobody holds.
func (c *converter) reportOwnImage(m offline.Manifest, spec map[string]any) {
	for _, field := range []string{"image", "customDeploy"} {
		if conversion.ValueAt[map[string]any](spec, field) != nil {
			c.AddFinding(m, "spec."+field, conversion.RuleLost, "somebody has had it installed, and such a host is never claimed: remove the field, which has its baremetal-operator clean it, when nobody needs what runs there")
		}
	}
}

// reportHostAnnotations adds a finding for each annotation that keeps a Machine from claiming the host.
func (c *converter) reportHostAnnotations(m offline.Manifest) {
	const field = "metadata.annotations"
	annotations := conversion.ValueAt[map[string]any](m.Object, "metadata", "annotations")
	for _, key := range []string{metal3.PausedAnnotation, metal3.DetachedAnnotation} {
		if _, isSet := annotations[key]; isSet {
			c.AddFinding(m, field, conversion.RuleCheck, "%s keeps its baremetal-operator away, and no Machine claims it: remove the annotation when it may be used", key)
		}
	}
	if _, isUnhealthy := annotations["capi.metal3.io/unhealthy"]; isUnhealthy {
		c.AddFinding(m, field, conversion.RuleLost, "capi.metal3.io/unhealthy means nothing here: pause the host (baremetalhost.metal3.io/paused), or take away a label that hostSelectors name")
	}
}
