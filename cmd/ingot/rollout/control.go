// Package rollout implements `ingot rollout`, which shows, pauses and resumes rollouts, and undoes them by setting the NodeType back.
package rollout

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/connect"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
)

// subcommands returns the commands that act on the rollouts of a cluster.
func subcommands() []*cobra.Command {
	return []*cobra.Command{
		newStatusCommand(),
		newCommand("history NODETYPE", "Show the revisions and renderings that are kept, and what undo can go back to", cobra.ExactArgs(1), showHistory),
		newCommand("pause NODETYPE", "Start no further Machine", cobra.ExactArgs(1), pause),
		newCommand("resume NODETYPE", "Go on, also after a stop; failures so far are forgiven", cobra.ExactArgs(1), resume),
		newUndoCommand(),
		newCommand("refresh NODETYPE", "Have the Machines installed as the version of Ingot that runs would do it", cobra.ExactArgs(1), refresh),
	}
}

// session is one command on one cluster.
type session struct {
	client client.Client
	out    io.Writer
	// notes gets what is to be said beside the answer.
	notes io.Writer
	json  bool
	// shared is the kubeconfig file of a cluster that tenants share; empty: none is given.
	shared string
	// pollInterval is the pause between two requests for the state of a rollout.
	pollInterval time.Duration
}

func newCommand(use, short string, args cobra.PositionalArgs, act func(context.Context, session, []string) error) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: args}
	flags := connect.AddFlags(c)
	if err := c.Flags().MarkHidden("namespace"); err != nil {
		panic(err) // a flag that connect.AddFlags no longer adds
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		asJSON, err := flags.IsJSON(cmd)
		if err != nil {
			return err
		}
		k, err := flags.Client(cmd)
		if err != nil {
			return err
		}
		s := session{client: k, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), json: asJSON, pollInterval: time.Second}
		// The manager writes the status of a NodeType at any time; what is to be done is then decided again by what the NodeType has become.
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return act(cmd.Context(), s, args) })
	}
	return c
}

// listRollouts returns the rollouts of a NodeType, or all when nodeType is empty, the newest last.
func (s session) listRollouts(ctx context.Context, nodeType string) ([]v1alpha1.Rollout, error) {
	var list v1alpha1.RolloutList
	if err := s.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list Rollouts: %w", err)
	}
	matching := slices.DeleteFunc(list.Items, func(r v1alpha1.Rollout) bool { return nodeType != "" && r.Spec.NodeTypeRef.Name != nodeType })
	slices.SortFunc(matching, func(a, b v1alpha1.Rollout) int {
		if nodeType == "" && !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		}
		return compareNumbers(a, b)
	})
	return matching, nil
}

// compareNumbers orders the Rollouts of a NodeType by age. Creation times have a resolution of one second, and two of them may be created in the
// same second.
func compareNumbers(a, b v1alpha1.Rollout) int {
	return cmp.Or(cmp.Compare(revisionrollout.Number(a.Name), revisionrollout.Number(b.Name)), cmp.Compare(a.Name, b.Name))
}

// activeRollout returns the rollout of the NodeType that is not in a final phase.
func (s session) activeRollout(ctx context.Context, nodeType string) (*v1alpha1.Rollout, error) {
	all, err := s.listRollouts(ctx, nodeType)
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].Status.Phase.IsFinal() {
			return &all[i], nil
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("NodeType %s has had no rollout: ingot rollout status lists those that there are", nodeType)
	}
	return nil, fmt.Errorf("NodeType %s has no rollout under way: the last one, %s, is %s", nodeType, all[len(all)-1].Name, all[len(all)-1].Status.Phase)
}

func (s session) setPaused(ctx context.Context, r *v1alpha1.Rollout, paused bool) error {
	change := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused))
	if err := s.client.Patch(ctx, r, change); err != nil {
		return fmt.Errorf("change Rollout %s: %w", r.Name, err)
	}
	return nil
}

func pause(ctx context.Context, s session, args []string) error {
	r, err := s.activeRollout(ctx, args[0])
	if err != nil {
		return err
	}
	if err := s.setPaused(ctx, r, true); err != nil {
		return err
	}
	return s.printResult("rollout %s is paused: Machines that are under way go on, no further one starts", r.Name)
}

// resumeLimit is how long the controller may take to pause a stopped rollout.
const resumeLimit = time.Minute

func resume(ctx context.Context, s session, args []string) error {
	r, err := s.activeRollout(ctx, args[0])
	if err != nil {
		return err
	}
	if r.Status.Phase != v1alpha1.RolloutStopped && !r.Spec.Paused {
		return s.printResult("rollout %s is %s: there is nothing to resume", r.Name, r.Status.Phase)
	}
	if r.Status.Phase == v1alpha1.RolloutStopped {
		// To continue a stopped rollout is a person's decision. It is recorded as the end of a pause.
		if err := s.setPaused(ctx, r, true); err != nil {
			return err
		}
		if r, err = s.waitUntilPaused(ctx, r.Name); err != nil {
			return err
		}
	}
	if err := s.setPaused(ctx, r, false); err != nil {
		return err
	}
	return s.printResult("rollout %s goes on", r.Name)
}

func (s session) waitUntilPaused(ctx context.Context, name string) (*v1alpha1.Rollout, error) {
	ctx, cancel := context.WithTimeout(ctx, resumeLimit)
	defer cancel()
	for {
		r := &v1alpha1.Rollout{}
		if err := s.client.Get(ctx, client.ObjectKey{Name: name}, r); err != nil {
			return nil, fmt.Errorf("read Rollout %s: %w", name, err)
		}
		if r.Status.Phase == v1alpha1.RolloutPaused {
			return r, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("rollout %s is %s and does not become Paused: is ingot-manager running? Run this command again", name, r.Status.Phase)
		case <-time.After(s.pollInterval):
		}
	}
}

// printResult prints the outcome of a command.
func (s session) printResult(format string, args ...any) error {
	return cli.WriteResult(s.out, s.json, fmt.Sprintf(format, args...))
}

// Command returns `ingot rollout`, with further commands below it.
func Command(more ...*cobra.Command) *cobra.Command {
	return cli.NewGroup("rollout", "Show, pause, resume, undo or simulate how a change reaches the fleet", append(subcommands(), more...)...)
}
