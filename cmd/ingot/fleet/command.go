package fleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/connect"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/sameserver"
	"github.com/ingot-dev/ingot/controllers/step"
)

// MachinesCommand is `ingot machines`.
func MachinesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "machines", Short: "List Machines: what each waits for, for how long, against which deadline", Args: cobra.NoArgs,
	}
	flags := connect.AddFlags(c)
	flags.AddAllNamespaces(c)
	c.RunE = queryCommand(flags, "Machines", func(ctx context.Context, k client.Client, now time.Time, _ []string) (any, [][]string, error) {
		var list v1alpha1.MachineList
		if err := k.List(ctx, &list, client.InNamespace(flags.Namespace())); err != nil {
			return nil, nil, listError("Machines", flags.Namespace(), err)
		}
		var rollouts v1alpha1.RolloutList
		if err := k.List(ctx, &rollouts); err != nil && !apierrors.IsForbidden(err) {
			return nil, nil, fmt.Errorf("list Rollouts: %w", err)
		}
		// The hosts of a namespace's Machines are in the namespaces of their providers.
		hosts, err := listHosts(ctx, k, "")
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, nil, err
		}
		rows := MachineRows(list.Items, hosts, rollouts.Items, now)
		return rows, machineTable(rows, now), nil
	})
	return c
}

// HostsCommand is `ingot hosts`.
func HostsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "hosts", Short: "List hosts: free, claimed, in error or why not free, and which NodeTypes each fits", Args: cobra.NoArgs,
	}
	flags := connect.AddFlags(c)
	flags.AddAllNamespaces(c)
	flags.AddWide(c)
	onlyStrangers := c.Flags().Bool("strangers", false, "list the servers that asked a boot service and have no BareMetalHost, and what to do with each")
	c.RunE = queryCommand(flags, "hosts", func(ctx context.Context, k client.Client, now time.Time, _ []string) (any, [][]string, error) {
		if *onlyStrangers {
			return queryStrangers(ctx, k, now)
		}
		var nodeTypes v1alpha1.NodeTypeList
		var providers v1alpha1.NodeProviderList
		for _, l := range []client.ObjectList{&nodeTypes, &providers} {
			if err := k.List(ctx, l); err != nil {
				return nil, nil, fmt.Errorf("list %ss: %w", listedKind(l), err)
			}
		}
		facts, err := listHosts(ctx, k, flags.Namespace())
		if err != nil {
			return nil, nil, err
		}
		machines, err := listMachineUIDs(ctx, k)
		if err != nil {
			return nil, nil, err
		}
		rows := HostRows(facts, nodeTypes.Items, providers.Items, machines)
		return rows, hostTable(rows, flags.IsWide()), nil
	})
	return c
}

// listMachineUIDs returns the uids of the Machines of all namespaces, or nil where the user may not list them. It is called after the hosts are
// listed, so that the Machine of a new claim is among them.
func listMachineUIDs(ctx context.Context, k client.Client) (MachineUIDs, error) {
	var list v1alpha1.MachineList
	if err := k.List(ctx, &list); apierrors.IsForbidden(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	uids := MachineUIDs{}
	for i := range list.Items {
		uids[list.Items[i].ClaimUID()] = true
	}
	return uids, nil
}

func listHosts(ctx context.Context, k client.Client, namespace string) ([]placement.HostFacts, error) {
	var all metal3.BareMetalHostList
	var records v1alpha1.HostRecordList
	for _, l := range []client.ObjectList{&all, &records} {
		if err := k.List(ctx, l, client.InNamespace(namespace)); err != nil {
			return nil, listError(listedKind(l)+"s", namespace, err)
		}
	}
	facts := placement.Pair(all.Items, records.Items)
	everywhere, err := listEverywhere(ctx, k, namespace, facts)
	compareServers(facts, everywhere)
	return facts, err
}

// listedKind is the kind of the objects in a list.
func listedKind(list client.ObjectList) string { return strings.TrimSuffix(step.Kind(list), "List") }

// listEverywhere returns the hosts of all namespaces or, where the user may not list them, those of the one namespace.
func listEverywhere(ctx context.Context, k client.Client, namespace string, listed []placement.HostFacts) ([]placement.HostFacts, error) {
	if namespace == "" {
		return listed, nil
	}
	var hosts metal3.BareMetalHostList
	var records v1alpha1.HostRecordList
	for _, l := range []client.ObjectList{&hosts, &records} {
		if err := k.List(ctx, l); apierrors.IsForbidden(err) {
			return listed, nil
		} else if err != nil {
			return listed, fmt.Errorf("list %ss of all namespaces: %w", listedKind(l), err)
		}
	}
	return placement.Pair(hosts.Items, records.Items), nil
}

// compareServers sets SameServer of the listed hosts whose server is that of another host.
func compareServers(listed, everywhere []placement.HostFacts) {
	servers := make([]sameserver.Host, len(everywhere))
	for i, f := range everywhere {
		servers[i] = sameserver.HostOf(f.Host, f.Record)
	}
	conflicts := sameserver.ConflictsOfAll(servers)
	for i, f := range listed {
		listed[i].SameServer = sameserver.Describe(conflicts[f.Host.Namespace+"/"+f.Host.Name])
	}
}

// WhyCommand is `ingot why MACHINE|HOST`.
func WhyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "why MACHINE|HOST", Short: "Say why a Machine is as it is: condition, check, host, and the next step for a person", Args: cobra.ExactArgs(1),
		Long: "Say why a Machine is as it is: condition, check, host, and the next step for a person. The name of a host does too.\n\n" +
			"With --log, print the end of the log of the agent that last worked on a host, 64 KiB at most: of the Machine's host, or of the host of that name. " +
			"It stays until the agent of the next attempt writes.",
	}
	flags := connect.AddFlags(c)
	printLog := c.Flags().Bool("log", false, "print the log of the agent that last worked on the Machine's host, or on the host of that name")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *printLog {
			return logCommand(cmd, flags, args[0])
		}
		json, err := flags.IsJSON(cmd)
		if err != nil {
			return err
		}
		k, err := flags.Client(cmd)
		if err != nil {
			return err
		}
		w, err := diagnose(cmd.Context(), k, flags.Namespace(), args[0], time.Now())
		if err != nil {
			return err
		}
		w.addManager(flags.Manager())
		if json {
			return writeJSON(cmd.OutOrStdout(), w)
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), w.text())
		return err
	}
	return c
}

// diagnoseMachine reads the objects that Diagnose needs.
func diagnoseMachine(ctx context.Context, k client.Client, namespace, name string, now time.Time) (Diagnosis, error) {
	m, err := connect.FindMachine(ctx, k, namespace, name)
	if err != nil {
		return Diagnosis{}, err
	}
	e, err := gather(ctx, k, m)
	if err != nil {
		return Diagnosis{}, err
	}
	d := Diagnose(m, e.host, e.rollout, now)
	d.Candidates, d.Unread = e.candidates, e.unread
	d.setProvider(e.provider)
	return d, nil
}

// listError is the error of a list in a namespace, or in all. Who may not list all may still list one.
func listError(kinds, namespace string, err error) error {
	if namespace == "" && apierrors.IsForbidden(err) {
		return fmt.Errorf("list %s: %w: name a namespace that you may see with -n", kinds, err)
	}
	return fmt.Errorf("list %s: %w", kinds, err)
}

// query reads objects and returns the answer as a value for JSON and as a table.
type query func(ctx context.Context, k client.Client, now time.Time, args []string) (any, [][]string, error)

// queryCommand returns what runs a query. kinds names what it lists.
func queryCommand(flags *connect.Flags, kinds string, query query) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		json, err := flags.IsJSON(cmd)
		if err != nil {
			return err
		}
		k, err := flags.Client(cmd)
		if err != nil {
			return err
		}
		value, table, err := query(cmd.Context(), k, time.Now(), args)
		if err != nil {
			return err
		}
		if json {
			return writeJSON(cmd.OutOrStdout(), value)
		}
		return writeList(cmd, kinds, flags.Namespace(), table)
	}
}

// writeList writes a table or, where it has only its heads, says as kubectl does that there is nothing, and where.
func writeList(cmd *cobra.Command, kinds, namespace string, table [][]string) error {
	if len(table) > 1 {
		return cli.WriteTable(cmd.OutOrStdout(), table)
	}
	_, err := fmt.Fprintf(cmd.ErrOrStderr(), "no %s %s\n", kinds, cli.InNamespace(namespace))
	return err
}
