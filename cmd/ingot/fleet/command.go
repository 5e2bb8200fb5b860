package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/connect"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/step"
)

// MachinesCommand is `ingot machines`.
func MachinesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "machines", Short: "List Machines: what each waits for, for how long, against which deadline", Args: cobra.NoArgs,
	}
	flags := connect.Add(c)
	c.RunE = run(flags, func(ctx context.Context, k client.Client, now time.Time, _ []string) (any, [][]string, error) {
		var list v1alpha1.MachineList
		if err := k.List(ctx, &list, client.InNamespace(flags.Namespace())); err != nil {
			return nil, nil, fmt.Errorf("list Machines: %w", err)
		}
		rows := Rows(list.Items, now)
		return rows, machineTable(rows, now), nil
	})
	return c
}

// HostsCommand is `ingot hosts`.
func HostsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "hosts", Short: "List hosts: free, claimed or in error, and which NodeTypes each fits", Args: cobra.NoArgs,
	}
	flags := connect.Add(c)
	c.RunE = run(flags, func(ctx context.Context, k client.Client, _ time.Time, _ []string) (any, [][]string, error) {
		var nodeTypes v1alpha1.NodeTypeList
		var providers v1alpha1.NodeProviderList
		for _, l := range []client.ObjectList{&nodeTypes, &providers} {
			if err := k.List(ctx, l); err != nil {
				return nil, nil, fmt.Errorf("list %ss: %w", strings.TrimSuffix(step.Kind(l), "List"), err)
			}
		}
		facts, err := hosts(ctx, k, flags.Namespace())
		if err != nil {
			return nil, nil, err
		}
		rows := Hosts(facts, nodeTypes.Items, providers.Items)
		return rows, hostTable(rows), nil
	})
	return c
}

func hosts(ctx context.Context, k client.Client, namespace string) ([]placement.HostFacts, error) {
	var all metal3.BareMetalHostList
	var records v1alpha1.HostRecordList
	for _, l := range []client.ObjectList{&all, &records} {
		if err := k.List(ctx, l, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list %ss: %w", strings.TrimSuffix(step.Kind(l), "List"), err)
		}
	}
	return placement.Pair(all.Items, records.Items), nil
}

// WhyCommand is `ingot why MACHINE`.
func WhyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "why MACHINE", Short: "Say why a Machine is as it is: condition, check, host, and the next step for a person", Args: cobra.ExactArgs(1),
	}
	flags := connect.Add(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		json, err := flags.JSON(cmd)
		if err != nil {
			return err
		}
		k, err := flags.Client()
		if err != nil {
			return err
		}
		w, err := why(cmd.Context(), k, flags.Namespace(), args[0], time.Now())
		if err != nil {
			return err
		}
		if json {
			return writeJSON(cmd.OutOrStdout(), w)
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), w.text())
		return err
	}
	return c
}

// why fetches what Explain needs.
func why(ctx context.Context, k client.Client, namespace, name string, now time.Time) (Why, error) {
	m, err := connect.FindMachine(ctx, k, namespace, name)
	if err != nil {
		return Why{}, err
	}
	var host *placement.HostFacts
	if ref := m.Status.HostRef; ref != nil {
		facts, err := hosts(ctx, k, ref.Namespace)
		if err != nil {
			return Why{}, err
		}
		if i := slices.IndexFunc(facts, func(f placement.HostFacts) bool { return f.Host.Name == ref.Name }); i >= 0 {
			host = &facts[i]
		}
	}
	var rollout *v1alpha1.Rollout
	if label := m.Labels[v1alpha1.LabelRollout]; label != "" {
		r := &v1alpha1.Rollout{}
		err := k.Get(ctx, client.ObjectKey{Name: label}, r)
		if client.IgnoreNotFound(err) != nil {
			return Why{}, fmt.Errorf("read Rollout %s: %w", label, err)
		}
		if err == nil {
			rollout = r
		}
	}
	return Explain(m, host, rollout, now), nil
}

// answer fetches and computes what is shown: as JSON, and as a table.
type answer func(ctx context.Context, k client.Client, now time.Time, args []string) (any, [][]string, error)

func run(flags *connect.Flags, answer answer) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		json, err := flags.JSON(cmd)
		if err != nil {
			return err
		}
		k, err := flags.Client()
		if err != nil {
			return err
		}
		value, table, err := answer(cmd.Context(), k, time.Now(), args)
		if err != nil {
			return err
		}
		if json {
			return writeJSON(cmd.OutOrStdout(), value)
		}
		return cli.WriteTable(cmd.OutOrStdout(), table)
	}
}
