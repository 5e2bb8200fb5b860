package claims

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/connect"
)

// options are the flags of the command line.
type options struct {
	flags              *connect.Flags
	kubeconfig, within string
}

// Command is `ingot claims`.
func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use: "claims TENANTCLUSTER -n NAMESPACE --shared-kubeconfig FILE", Short: "List who holds which devices of a shared cluster, on which node, Machine, host and rack",
		Long: `Reads the ResourceClaims of a shared cluster with your own rights there, and the Entitlements,
Machines and hosts of the management cluster. What you may not read is left out, and a note says so.
Claims that wait come first, the longest waiting before the others, then those that are Unused: no pod
asks for them, and they count against the quota all the same. VIRTUAL is the claim of a virtual cluster that a
claim was synced from, as its tenant knows it: VIRTUALCLUSTER:NAMESPACE/CLAIM.`,
		Example: "  ingot claims gpus -n shared --shared-kubeconfig gpus.kubeconfig",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return run(cmd, o, args[0]) },
	}
	o.flags = connect.AddFlags(c)
	c.Flags().Lookup("namespace").Usage = "namespace of the TenantCluster; required"
	c.Flags().StringVar(&o.kubeconfig, "shared-kubeconfig", "", "kubeconfig file of the shared cluster")
	c.Flags().StringVar(&o.within, "claim-namespace", "", "namespace of the shared cluster; without it all")
	// For who is used to it: nothing needs to know whether it is given.
	c.Flags().BoolP("all-namespaces", "A", false, "all namespaces of the shared cluster, as without --claim-namespace")
	c.MarkFlagsMutuallyExclusive("claim-namespace", "all-namespaces")
	return c
}

func run(cmd *cobra.Command, o options, cluster string) error {
	asJSON, err := o.flags.IsJSON(cmd)
	if err != nil {
		return err
	}
	if o.kubeconfig == "" || o.flags.Namespace() == "" {
		return cli.Usagef(cmd, "expected -n, the namespace of the TenantCluster, and --shared-kubeconfig, which reaches the shared cluster")
	}
	rows, err := readRows(cmd, o, cluster)
	if err != nil {
		return err
	}
	switch {
	case !asJSON && len(rows) == 0:
		fmt.Fprintln(cmd.ErrOrStderr(), "no ResourceClaims "+cli.InNamespace(o.within)+" of the shared cluster")
		return nil
	case !asJSON:
		return cli.WriteTable(cmd.OutOrStdout(), Table(rows, time.Now()))
	}
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(rows)
}

// readRows reads both clusters.
func readRows(cmd *cobra.Command, o options, cluster string) ([]Row, error) {
	shared, err := Open(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	k, err := o.flags.Client(cmd)
	if err != nil {
		return nil, err
	}
	ctx, notes := cmd.Context(), cmd.ErrOrStderr()
	tenant, err := ReadTenantCluster(ctx, k, client.ObjectKey{Namespace: o.flags.Namespace(), Name: cluster})
	if err != nil {
		return nil, err
	}
	if _, err := shared.Match(ctx, notes, []v1alpha1.TenantCluster{tenant}); err != nil {
		return nil, err
	}
	held, err := shared.List(ctx, o.within)
	if apierrors.IsForbidden(err) && o.within == "" {
		return nil, fmt.Errorf("%w, or name a --claim-namespace", err)
	}
	if err != nil {
		return nil, err
	}
	var wanted map[string]bool
	if slices.ContainsFunc(held, func(c resourcev1.ResourceClaim) bool { return c.Status.Allocation == nil }) {
		if wanted, err = shared.ListWanted(ctx, notes, o.within); err != nil {
			return nil, err
		}
	}
	known, err := ReadSite(ctx, k, notes, tenant)
	if err != nil {
		return nil, err
	}
	return Rows(held, wanted, known), nil
}

// ReadTenantCluster reads a TenantCluster of the management cluster.
func ReadTenantCluster(ctx context.Context, k client.Client, key client.ObjectKey) (v1alpha1.TenantCluster, error) {
	var out v1alpha1.TenantCluster
	if err := k.Get(ctx, key, &out); err != nil {
		return out, fmt.Errorf("read TenantCluster %s: %w", key, err)
	}
	return out, nil
}

// ReadSite reads what the management cluster knows of a shared cluster. A note says what the caller may not read.
func ReadSite(ctx context.Context, k client.Client, notes io.Writer, cluster v1alpha1.TenantCluster) (Site, error) {
	var entitlements v1alpha1.EntitlementList
	var machines v1alpha1.MachineList
	var hosts metal3.BareMetalHostList
	for kind, list := range map[string]client.ObjectList{"Entitlements": &entitlements, "Machines": &machines} {
		if err := k.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
			return Site{}, fmt.Errorf("list %s: %w", kind, err)
		}
	}
	if err := k.List(ctx, &hosts); apierrors.IsForbidden(err) {
		fmt.Fprintln(notes, "note: you may not list hosts, so RACK is left out")
	} else if err != nil {
		return Site{}, fmt.Errorf("list hosts: %w", err)
	}
	return NewSite(cluster.Name, entitlements.Items, machines.Items, hosts.Items), nil
}

// Table returns the table for a terminal, with its heads.
func Table(rows []Row, now time.Time) [][]string {
	out := [][]string{{"TENANT", "CLAIM", "VIRTUAL", "CLASS", "DEVICES", "NODE", "MACHINE", "HOST", "RACK", "FOR", "HOLDER"}}
	for _, r := range rows {
		devices := strconv.Itoa(r.Devices)
		switch {
		case r.Reason == v1alpha1.WaitUnused:
			devices = "Unused, asks for " + devices
		case r.IsWaiting:
			devices = "waits for " + devices
		}
		virtual := ""
		if v := r.Virtual; v != nil {
			virtual = strings.TrimPrefix(v.Cluster+":", ":") + v.Namespace + "/" + v.Claim
		}
		line := []string{r.Tenant, r.Namespace + "/" + r.Claim, virtual, r.Class, devices, r.Node, r.Machine, r.Host, r.Rack, duration.HumanDuration(max(now.Sub(r.Since), 0)), r.Holder}
		for i, text := range line {
			if text == "" {
				line[i] = "-"
			}
		}
		out = append(out, line)
	}
	return out
}
