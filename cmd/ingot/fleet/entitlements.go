package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/connect"
)

// EntitlementRow is a class of an Entitlement as `ingot entitlements -o json` prints it.
type EntitlementRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Tenant    string `json:"tenant"`
	Cluster   string `json:"cluster"`
	// Enforced: the shared cluster refuses what the tenant is not entitled to.
	Enforced bool `json:"enforced"`
	// Class of the Entitlement; empty: it has none, or what is given is of no class of it.
	Class string `json:"class,omitempty"`
	// TakenAway: the Entitlement has no such class any more, and claims hold devices of it.
	TakenAway bool `json:"takenAway,omitempty"`
	// Gives is the DeviceClass that claims name, or the resource that containers ask for; empty: neither.
	Gives     string `json:"gives,omitempty"`
	Entitled  int32  `json:"entitled"`
	Allocated int32  `json:"allocated"`
	Pending   int32  `json:"pending"`
	// Admitted is how many devices of admitted nodes match, whoever has them.
	Admitted int32 `json:"admitted"`
	// Waits are what of the tenant waits for devices, of all its classes together.
	Waits []v1alpha1.DeviceWait `json:"waits,omitempty"`
	// Problem is why it is not enforced, or why the class gives nothing, or that it is taken away.
	Problem string `json:"problem,omitempty"`
}

// EntitlementsCommand is `ingot entitlements`.
func EntitlementsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "entitlements", Short: "List what the tenants of shared clusters may ask for, have and wait for; what needs a look comes first", Args: cobra.NoArgs,
	}
	flags := connect.AddFlags(c)
	flags.AddAllNamespaces(c)
	c.RunE = queryCommand(flags, "Entitlements", func(ctx context.Context, k client.Client, now time.Time, _ []string) (any, [][]string, error) {
		var list v1alpha1.EntitlementList
		if err := k.List(ctx, &list, client.InNamespace(flags.Namespace())); err != nil {
			return nil, nil, listError("Entitlements", flags.Namespace(), err)
		}
		rows := EntitlementRows(list.Items)
		return rows, entitlementTable(rows, now), nil
	})
	return c
}

// EntitlementRows returns a row for each class, one for each class that was taken away while claims hold its devices, and one for an Entitlement without either:
// first those with a problem, then those of whose tenant something waits, then the others by name.
func EntitlementRows(entitlements []v1alpha1.Entitlement) []EntitlementRow {
	rows := []EntitlementRow{}
	for i := range entitlements {
		e := &entitlements[i]
		row := EntitlementRow{Namespace: e.Namespace, Name: e.Name, Tenant: e.Spec.Tenant, Cluster: e.Spec.TenantClusterRef.Name, Waits: e.Status.Waits}
		row.Enforced, row.Problem = isTrue(e.Status.Conditions, v1alpha1.ConditionEnforced)
		found := append(classRows(row, e.Status.Classes), takenAwayRows(row, &e.Status)...)
		if len(found) == 0 {
			found = []EntitlementRow{row}
		}
		rows = append(rows, found...)
	}
	slices.SortStableFunc(rows, func(a, b EntitlementRow) int {
		return cmp.Or(
			cmp.Compare(need(a), need(b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Gives, b.Gives),
		)
	})
	return rows
}

// classRows returns a row for each class. row has what is of the Entitlement.
func classRows(row EntitlementRow, classes []v1alpha1.EntitledClassStatus) []EntitlementRow {
	var out []EntitlementRow
	for _, class := range classes {
		r := row
		r.Class, r.Gives = class.Name, cmp.Or(class.DeviceClass, class.Resource)
		r.Entitled, r.Allocated, r.Pending, r.Admitted = class.Entitled, class.Allocated, class.Pending, class.Admitted
		if r.Enforced {
			r.Problem = problemOf(class)
		}
		out = append(out, r)
	}
	return out
}

// takenAwayRows returns a row for each DeviceClass that no class of the Entitlement is, and of which claims of the tenant hold devices.
func takenAwayRows(row EntitlementRow, status *v1alpha1.EntitlementStatus) []EntitlementRow {
	held := map[string]int32{}
	for _, holding := range status.Holdings {
		for name, n := range holding.Devices {
			held[name] += n
		}
	}
	for _, class := range status.Classes {
		delete(held, class.DeviceClass)
	}
	var out []EntitlementRow
	for name, n := range held {
		r := row
		says := "never given"
		if class, isOwn := strings.CutPrefix(name, row.Tenant+"-"); isOwn {
			r.Class, r.TakenAway, says = class, true, "taken away"
		}
		r.Gives, r.Allocated, r.Problem = name, n, fmt.Sprintf("%s, %d held", says, n)
		if row.Problem != "" {
			r.Problem += "; " + row.Problem
		}
		out = append(out, r)
	}
	return out
}

// problemOf returns why a class of an Entitlement that is enforced gives nothing, or too much; empty: neither.
func problemOf(class v1alpha1.EntitledClassStatus) string {
	if _, why := isTrue(class.Conditions, v1alpha1.ConditionAvailable); why != "" {
		return why
	}
	for _, name := range []string{v1alpha1.ConditionIsolated, v1alpha1.ConditionWithinLimits} {
		if c := meta.FindStatusCondition(class.Conditions, name); c != nil && c.Status == metav1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// need orders rows by how much they need a look.
func need(r EntitlementRow) int {
	switch {
	case r.Problem != "":
		return 0
	case len(r.Waits) > 0:
		return 1
	}
	return 2
}

// isTrue reports whether a condition is True, and otherwise why not.
func isTrue(conditions []metav1.Condition, name string) (is bool, why string) {
	switch c := meta.FindStatusCondition(conditions, name); {
	case c == nil:
		return false, "no manager has looked at it yet"
	case c.Status != metav1.ConditionTrue:
		return false, c.Reason + ": " + c.Message
	}
	return true, ""
}

// entitlementTable returns the table for a terminal.
func entitlementTable(rows []EntitlementRow, now time.Time) [][]string {
	out := [][]string{{"NAMESPACE", "NAME", "TENANT", "CLUSTER", "CLASS", "GIVES", "ENTITLED", "ALLOCATED", "PENDING", "ADMITTED", "ENFORCED", "WAITS", "PROBLEM"}}
	said := map[string]bool{}
	for _, r := range rows {
		waits := ""
		if name := r.Namespace + "/" + r.Name; !said[name] {
			said[name], waits = true, waitText(r.Waits, now)
		}
		enforced := string(metav1.ConditionFalse)
		if r.Enforced {
			enforced = string(metav1.ConditionTrue)
		}
		number := func(n int32) string { return strconv.Itoa(int(n)) }
		out = append(out, []string{
			r.Namespace, orDash(r.Name), r.Tenant, r.Cluster, orDash(r.Class), orDash(r.Gives), number(r.Entitled), number(r.Allocated), number(r.Pending), number(r.Admitted), enforced, orDash(waits), orDash(r.Problem),
		})
	}
	return out
}

// waitText says how many of which kind wait, since when, and why.
func waitText(waits []v1alpha1.DeviceWait, now time.Time) string {
	var out []string
	for _, w := range waits {
		out = append(out, fmt.Sprintf("%d %s %s %s", w.Count, w.Kind, w.Reason, duration.HumanDuration(max(now.Sub(w.Since.Time), 0))))
	}
	return strings.Join(out, ", ")
}
