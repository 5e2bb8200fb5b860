package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/strangers"
	"github.com/ingot-dev/ingot/controllers/host/strangerbook"
)

// StrangerRow is a server without a BareMetalHost as `ingot hosts --strangers -o json` prints it.
type StrangerRow struct {
	strangers.Stranger
	// Heard is the namespace of the boot service that it asked.
	Heard string `json:"heard"`
	// Next is what to do.
	Next string `json:"next"`
}

// queryStrangers reads the strangers of all boot services.
func queryStrangers(ctx context.Context, k client.Client, now time.Time) (any, [][]string, error) {
	var lists corev1.ConfigMapList
	if err := k.List(ctx, &lists, client.HasLabels{strangerbook.Label}); err != nil {
		return nil, nil, fmt.Errorf("list the ConfigMaps with strangers: %w", err)
	}
	var hosts metal3.BareMetalHostList
	if err := k.List(ctx, &hosts); err != nil {
		return nil, nil, fmt.Errorf("list BareMetalHosts: %w", err)
	}
	var rows []StrangerRow
	for i := range lists.Items {
		all, err := strangerbook.Decode(&lists.Items[i])
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, StrangerRows(all, lists.Items[i].Namespace, hosts.Items)...)
	}
	slices.SortStableFunc(rows, func(a, b StrangerRow) int {
		return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.MAC, b.MAC))
	})
	if rows == nil {
		rows = []StrangerRow{}
	}
	return rows, strangerTable(rows, now), nil
}

// StrangerRows returns the strangers of the boot service in a namespace. One that has got a BareMetalHost since is a stranger to the boot services of other
// sites only, or waits for its HostRecord, and the row says so.
func StrangerRows(all []strangers.Stranger, heard string, hosts []metal3.BareMetalHost) []StrangerRow {
	registered := map[string]string{}
	for i := range hosts {
		if mac := strings.ToLower(hosts[i].Spec.BootMACAddress); mac != "" {
			registered[mac] = hosts[i].Namespace + "/" + hosts[i].Name
		}
	}
	rows := make([]StrangerRow, 0, len(all))
	for _, s := range all {
		row := StrangerRow{Stranger: s, Heard: heard, Next: "to install it: a BareMetalHost with spec.bootMACAddress " + s.MAC + "; else turn off its network boot"}
		if host := registered[s.MAC]; host != "" {
			row.Next = "BareMetalHost " + host + " has this address: is its server at another site, or was it registered since?"
		}
		rows = append(rows, row)
	}
	return rows
}

// strangerTable returns the rows as a table.
func strangerTable(rows []StrangerRow, now time.Time) [][]string {
	table := [][]string{{"MAC", "FIRST-SEEN", "LAST-SEEN", "ASKED", "SAYS", "FROM", "HEARD", "NEXT"}}
	for _, r := range rows {
		table = append(table, []string{
			r.MAC, timeSince(&r.FirstSeen, now), timeSince(&r.LastSeen, now), strings.Join(r.Asked, ", "), orDash(strings.Trim(r.Architecture+" "+r.Vendor, " ")),
			orDash(strings.Trim(r.Interface+" "+r.From, " ")), r.Heard, r.Next,
		})
	}
	return table
}
