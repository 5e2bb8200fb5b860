package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/cmd/ingot-demo/display"
)

// perMachine are the resources that a Machine's life writes; of them is asked for each Machine what the manager wrote.
var perMachine = []string{"machines", "baremetalhosts", "hostrecords", "secrets"}

// costs are what the first fleet cost the management cluster, from power-off to admitted, inspection included.
func (t *story) costs() []display.Cost {
	if len(t.cost) == 0 || t.o.Servers == 0 {
		return nil
	}
	n := float64(t.o.Servers)
	writes := 0
	var parts []string
	for _, resource := range slices.Sorted(maps.Keys(t.cost)) {
		if slices.Contains(perMachine, resource) {
			writes += t.cost[resource]
			parts = append(parts, fmt.Sprintf("%s %.1f", resource, float64(t.cost[resource])/n))
		}
	}
	return []display.Cost{
		{What: "API writes", PerMachine: float64(writes) / n, Detail: strings.Join(parts, ", ")},
		{What: "Events", PerMachine: float64(t.cost["events"]) / n},
	}
}
