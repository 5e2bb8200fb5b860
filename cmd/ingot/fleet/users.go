package fleet

import (
	"context"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/connect"
	"github.com/ingot-dev/ingot/controllers/plan/inuse"
)

// usedKinds are the kinds whose users can be listed.
var usedKinds = []string{inuse.NodeType, inuse.NodeProvider, inuse.OSImage, inuse.Revision, inuse.Rendering}

// UserRows is the answer of `ingot users`.
type UserRows struct {
	// Users are those that the caller may read, by kind and name, in the order in which they are ended.
	Users []string `json:"users"`
	// Unread says which kinds the caller may not read, so that users of these kinds are missing here.
	Unread []string `json:"unread,omitempty"`
}

// UsersCommand is `ingot users KIND NAME`.
func UsersCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "users KIND NAME", Short: "List what uses a NodeType, NodeProvider, OSImage, NodeTypeRevision or NodeTypeRendering, so that it is not deleted", Args: cobra.ExactArgs(2),
	}
	flags := connect.AddFlags(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		json, err := flags.IsJSON(cmd)
		if err != nil {
			return err
		}
		kind, err := usedKind(args[0])
		if err != nil {
			return err
		}
		k, err := flags.Client(cmd)
		if err != nil {
			return err
		}
		rows, err := ListUsers(cmd.Context(), k, inuse.Object{Kind: kind, Name: args[1]})
		if err != nil {
			return err
		}
		if json {
			return writeJSON(cmd.OutOrStdout(), rows)
		}
		return cli.WriteTable(cmd.OutOrStdout(), rows.table())
	}
	return c
}

// usedKind returns the kind that the word means: nodetype, nodetypes and NodeType mean the same.
func usedKind(word string) (string, error) {
	for _, kind := range usedKinds {
		if strings.EqualFold(kind, strings.TrimSuffix(strings.ToLower(word), "s")) {
			return kind, nil
		}
	}
	return "", fmt.Errorf("%s: expected one of %s", word, strings.ToLower(strings.Join(usedKinds, ", ")))
}

// ListUsers lists the users of an object with the rights of the caller.
func ListUsers(ctx context.Context, k client.Client, o inuse.Object) (UserRows, error) {
	var (
		nodeTypes v1alpha1.NodeTypeList
		providers v1alpha1.NodeProviderList
		revisions v1alpha1.NodeTypeRevisionList
		rollouts  v1alpha1.RolloutList
		pools     v1alpha1.NodePoolList
		machines  v1alpha1.MachineList
		hosts     metal3.BareMetalHostList
		rows      UserRows
	)
	for _, list := range []client.ObjectList{&nodeTypes, &providers, &revisions, &rollouts, &pools, &machines, &hosts} {
		if err := k.List(ctx, list); apierrors.IsForbidden(err) {
			rows.Unread = append(rows.Unread, listedKind(list)+"s: you may not list them in all namespaces")
		} else if err != nil {
			return rows, fmt.Errorf("list %ss: %w", listedKind(list), err)
		}
	}
	rows.Users = inuse.FindUsers(inuse.Facts{
		NodeTypes: nodeTypes.Items, NodeProviders: providers.Items, Revisions: revisions.Items, Rollouts: rollouts.Items,
		NodePools: pools.Items, Machines: machines.Items, Hosts: hosts.Items,
	})[o]
	return rows, nil
}

func (r UserRows) table() [][]string {
	table := [][]string{{"KIND", "NAME"}}
	for _, user := range r.Users {
		kind, name, _ := strings.Cut(user, " ")
		table = append(table, []string{kind, name})
	}
	for _, unread := range r.Unread {
		kind, why, _ := strings.Cut(unread, ": ")
		table = append(table, []string{kind, why})
	}
	return table
}
