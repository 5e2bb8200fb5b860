package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/claims"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// newStatusCommand returns `ingot rollout status`.
func newStatusCommand() *cobra.Command {
	var shared string
	c := newCommand("status [NODETYPE|ROLLOUT]", "Show rollouts; with a NodeType its latest, with a Rollout that one, with its history", cobra.MaximumNArgs(1),
		func(ctx context.Context, s session, args []string) error {
			s.shared = shared
			return showStatus(ctx, s, args)
		})
	c.Flags().StringVar(&shared, "shared-kubeconfig", "", "kubeconfig file of a cluster that tenants share: with your own rights there, also names the claims and tenants that hold devices on the nodes that are under way or next")
	c.Args = func(cmd *cobra.Command, args []string) error {
		if shared != "" && len(args) == 0 {
			return cli.Usagef(cmd, "expected a NodeType or a Rollout with --shared-kubeconfig")
		}
		return cobra.MaximumNArgs(1)(cmd, args)
	}
	return c
}

// useKey identifies the devices of a class on the node of a Machine.
type useKey struct{ machine, class string }

// heldNow returns how many devices of which class claims hold on the node of each Machine.
func heldNow(holders []holder) map[useKey]int {
	out := map[useKey]int{}
	for _, h := range holders {
		out[useKey{h.Machine, h.Class}] += h.Devices
	}
	return out
}

// writeInUse writes what was in use on the nodes of the Machines that are under way and, where the claims were read, what is now: a drain takes them away, and
// the count of status.inUse stays until the Machine is Ready.
func writeInUse(b *strings.Builder, r *v1alpha1.Rollout, now map[useKey]int) {
	if r.Status.Phase.IsFinal() {
		return
	}
	for _, use := range r.Status.InUse {
		fmt.Fprintf(b, "  in use     %s: of %s %d held in %s when its drain began", use.Machine, use.DeviceClass, use.Devices, claimsText(use.Claims))
		if now != nil {
			fmt.Fprintf(b, ", %d now", now[useKey{use.Machine, use.DeviceClass}])
		}
		b.WriteString("\n")
	}
	if now == nil && (len(r.Status.InUse) > 0 || r.WaitsForTenants() != "") {
		fmt.Fprintf(b, "  names      ingot rollout status %s --shared-kubeconfig FILE names the claims and their tenants\n", r.Name)
	}
}

func claimsText(n int32) string {
	if n == 1 {
		return "1 claim"
	}
	return fmt.Sprintf("%d claims", n)
}

// The stages of a Machine that a rollout takes away.
const (
	underWay = "under way"
	next     = "next"
)

// holder is a claim that holds devices on the node of a Machine that a rollout takes away, as it is printed in JSON.
type holder struct {
	// Stage is "under way" or "next".
	Stage string `json:"stage"`
	claims.Row
}

// heldRollout is a Rollout with the claims that hold devices on its nodes, as it is printed in JSON.
type heldRollout struct {
	v1alpha1.Rollout
	Holders []holder `json:"holders"`
}

// showHolders shows Rollouts and, by name, who holds devices on the nodes that they take away.
func (s session) showHolders(ctx context.Context, rollouts []v1alpha1.Rollout) error {
	if !s.json {
		rollouts = rollouts[len(rollouts)-1:]
	}
	out := make([]heldRollout, len(rollouts))
	for i := range rollouts {
		holders, err := s.readHolders(ctx, &rollouts[i])
		if err != nil {
			return err
		}
		out[i] = heldRollout{rollouts[i], holders}
	}
	if s.json {
		return s.printJSON(out)
	}
	if _, err := fmt.Fprint(s.out, rolloutText(&out[0].Rollout, s.readChange(ctx, &out[0].Rollout), heldNow(out[0].Holders))); err != nil {
		return err
	}
	if len(out[0].Holders) == 0 {
		return s.printResult("no claim holds devices on the nodes that are under way or next")
	}
	return cli.WriteTable(s.out, holdersTable(out[0].Holders))
}

func holdersTable(holders []holder) [][]string {
	rows := make([]claims.Row, len(holders))
	for i := range holders {
		rows[i] = holders[i].Row
	}
	table := claims.Table(rows, time.Now())
	table[0] = slices.Insert(table[0], 0, "STAGE")
	for i := range holders {
		table[i+1] = slices.Insert(table[i+1], 0, holders[i].Stage)
	}
	return table
}

// readHolders returns the claims that hold devices on the nodes of the Machines that are under way or next, those under way first.
func (s session) readHolders(ctx context.Context, r *v1alpha1.Rollout) ([]holder, error) {
	holders := []holder{}
	stages, tenants, err := s.readStages(ctx, r)
	if err != nil || len(stages) == 0 {
		return holders, err
	}
	shared, err := claims.Open(s.shared)
	if err != nil {
		return nil, err
	}
	clusters, err := s.readClusters(ctx, shared, tenants)
	if err != nil {
		return nil, err
	}
	held, err := shared.List(ctx, metav1.NamespaceAll)
	if err != nil {
		return nil, err
	}
	for _, cluster := range clusters {
		site, err := claims.ReadSite(ctx, s.client, s.notes, cluster)
		if err != nil {
			return nil, err
		}
		for _, row := range claims.Rows(held, nil, site) {
			if stage := stages[row.Machine]; stage != "" && !row.IsWaiting {
				holders = append(holders, holder{stage, row})
			}
		}
	}
	slices.SortStableFunc(holders, func(a, b holder) int { return strings.Compare(b.Stage, a.Stage) })
	return holders, nil
}

// readClusters reads TenantClusters, and returns those of them that are the shared cluster.
func (s session) readClusters(ctx context.Context, shared claims.Shared, tenants []types.NamespacedName) ([]v1alpha1.TenantCluster, error) {
	var all []v1alpha1.TenantCluster
	for _, key := range tenants {
		cluster, err := claims.ReadTenantCluster(ctx, s.client, key)
		if err != nil {
			return nil, err
		}
		all = append(all, cluster)
	}
	return shared.Match(ctx, s.notes, all)
}

// readStages returns the stage of each Machine that a Rollout moves and that has a node, and their TenantClusters.
func (s session) readStages(ctx context.Context, r *v1alpha1.Rollout) (stages map[string]string, tenants []types.NamespacedName, err error) {
	var list v1alpha1.MachineList
	if err := s.client.List(ctx, &list); err != nil {
		return nil, nil, fmt.Errorf("list Machines: %w", err)
	}
	stages = map[string]string{}
	for i := range list.Items {
		m := &list.Items[i]
		key := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.TenantClusterRef.Name}
		stage := stageOf(m, r)
		if stage == "" {
			continue
		}
		stages[m.Namespace+"/"+m.Name] = stage
		if !slices.Contains(tenants, key) {
			tenants = append(tenants, key)
		}
	}
	return stages, tenants, nil
}

// stageOf returns the stage of a Machine in a Rollout; empty: it has no node, is moved already, or is not moved.
func stageOf(m *v1alpha1.Machine, r *v1alpha1.Rollout) string {
	switch {
	case r.Status.Phase.IsFinal() || m.Spec.NodeTypeRef != r.Spec.NodeTypeRef || m.Status.NodeRef == nil:
		return ""
	case slices.Contains(r.Status.InProgress, m.Namespace+"/"+m.Name):
		return underWay
	case m.Status.Installed() != r.Spec.Target():
		return next
	}
	return ""
}
