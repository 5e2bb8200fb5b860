package entitlement

import (
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// underWayPhases are those in which the devices of a Machine are expected to come. One that is Validating has its node: its verdict says whether it comes.
var underWayPhases = []v1alpha1.MachinePhase{v1alpha1.MachineDraining, v1alpha1.MachineClaiming, v1alpha1.MachineProvisioning, v1alpha1.MachineJoining}

// UnderWay says how many Machines of each NodeType are being installed or rolled, by the name of the NodeType. There is no text where none is.
func UnderWay(machines []v1alpha1.Machine) map[string]string {
	total, phases := map[string]int{}, map[string]map[v1alpha1.MachinePhase]int{}
	for i := range machines {
		name := machines[i].Spec.NodeTypeRef.Name
		total[name]++
		if phases[name] == nil {
			phases[name] = map[v1alpha1.MachinePhase]int{}
		}
		phases[name][machines[i].Status.Phase]++
	}
	out := map[string]string{}
	for name, counts := range phases {
		var parts []string
		n := 0
		for _, phase := range underWayPhases {
			if counts[phase] > 0 {
				n += counts[phase]
				parts = append(parts, fmt.Sprintf("%d %s", counts[phase], phase))
			}
		}
		if n > 0 {
			out[name] = fmt.Sprintf("%d of %d Machines of NodeType %s are being installed or rolled (%s): ingot machines says how far", n, total[name], name, strings.Join(parts, ", "))
		}
	}
	return out
}
