package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/connect"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
)

// control are the commands that act on rollouts of a cluster.
func control() []*cobra.Command {
	return []*cobra.Command{
		command("status [NODETYPE]", "Show rollouts; with a NodeType, the history of its latest", cobra.MaximumNArgs(1), status),
		command("pause NODETYPE", "Start no further Machine", cobra.ExactArgs(1), pause),
		command("resume NODETYPE", "Go on, also after a stop; failures so far are forgiven", cobra.ExactArgs(1), resume),
		command("undo NODETYPE", "Set the NodeType back to its stable revision and rendering", cobra.ExactArgs(1), undo),
		command("refresh NODETYPE", "Have the Machines installed as the version of Ingot that runs would do it", cobra.ExactArgs(1), refresh),
	}
}

// session is one command on one cluster.
type session struct {
	client client.Client
	out    io.Writer
	json   bool
	// pollInterval between looks at what is waited for.
	pollInterval time.Duration
}

func command(use, short string, args cobra.PositionalArgs, act func(context.Context, session, []string) error) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: args}
	flags := connect.Add(c)
	if err := c.Flags().MarkHidden("namespace"); err != nil {
		panic(err) // a flag that connect.Add no longer adds
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		asJSON, err := flags.JSON(cmd)
		if err != nil {
			return err
		}
		k, err := flags.Client()
		if err != nil {
			return err
		}
		return act(cmd.Context(), session{client: k, out: cmd.OutOrStdout(), json: asJSON, pollInterval: time.Second}, args)
	}
	return c
}

// rollouts of a NodeType (empty: of all), the newest last.
func (s session) rollouts(ctx context.Context, nodeType string) ([]v1alpha1.Rollout, error) {
	var list v1alpha1.RolloutList
	if err := s.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list Rollouts: %w", err)
	}
	mine := slices.DeleteFunc(list.Items, func(r v1alpha1.Rollout) bool { return nodeType != "" && r.Spec.NodeTypeRef.Name != nodeType })
	slices.SortFunc(mine, func(a, b v1alpha1.Rollout) int {
		if nodeType == "" && !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		}
		// Two Rollouts of a NodeType may be made within the second that creation times are told in.
		return cmp.Or(cmp.Compare(revisionrollout.Number(a.Name), revisionrollout.Number(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return mine, nil
}

// active is the rollout of the NodeType that is not settled.
func (s session) active(ctx context.Context, nodeType string) (*v1alpha1.Rollout, error) {
	all, err := s.rollouts(ctx, nodeType)
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].Status.Phase.Settled() {
			return &all[i], nil
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("NodeType %s has had no rollout: ingot rollout status lists those that there are", nodeType)
	}
	return nil, fmt.Errorf("NodeType %s has no rollout under way: the last one, %s, is %s", nodeType, all[len(all)-1].Name, all[len(all)-1].Status.Phase)
}

func status(ctx context.Context, s session, args []string) error {
	nodeType := strings.Join(args, "")
	all, err := s.rollouts(ctx, nodeType)
	if err != nil {
		return err
	}
	if s.json {
		text, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			return fmt.Errorf("print as JSON: %w", err)
		}
		_, err = fmt.Fprintf(s.out, "%s\n", text)
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(s.out, "no rollouts: a changed image, GPU presentation or user data of a NodeType makes one")
		return err
	}
	if nodeType != "" {
		_, err := fmt.Fprint(s.out, detail(&all[len(all)-1]))
		return err
	}
	table := [][]string{{"NODETYPE", "ROLLOUT", "PHASE", "DONE", "UNDER WAY", "FAILED", "STOPPED BY"}}
	for i := range all {
		r := &all[i]
		n := r.Status.Targets
		table = append(table, []string{
			r.Spec.NodeTypeRef.Name, r.Name, string(r.Status.Phase), fmt.Sprintf("%d/%d", n.Done, n.Total), fmt.Sprint(n.InProgress), fmt.Sprint(n.Failed), r.Status.StoppedBy,
		})
	}
	return cli.WriteTable(s.out, table)
}

// detail tells one rollout's story.
func detail(r *v1alpha1.Rollout) string {
	var b strings.Builder
	n := r.Status.Targets
	fmt.Fprintf(&b, "%s: %s, %d of %d done, %d under way, %d failed\n", r.Name, r.Status.Phase, n.Done, n.Total, n.InProgress, n.Failed)
	fmt.Fprintf(&b, "  from       %s\n  to         %s\n", r.Spec.From, r.Spec.To)
	if r.Spec.From == r.Spec.To {
		fmt.Fprintf(&b, "  rendering  %s, was %s\n", r.Spec.ToRendering, r.Spec.FromRendering)
	}
	if len(r.Status.Canary) > 0 {
		fmt.Fprintf(&b, "  canary     %s\n", strings.Join(r.Status.Canary, ", "))
	}
	if len(r.Status.InProgress) > 0 {
		fmt.Fprintf(&b, "  under way  %s\n", strings.Join(r.Status.InProgress, ", "))
	}
	if r.Status.StoppedBy != "" {
		fmt.Fprintf(&b, "  stopped by %s\n", r.Status.StoppedBy)
		fmt.Fprintf(&b, "  next       ingot why MACHINE; then ingot rollout undo %s, or ingot rollout resume %s\n", r.Spec.NodeTypeRef.Name, r.Spec.NodeTypeRef.Name)
	}
	for _, e := range r.Status.History {
		fmt.Fprintf(&b, "  %s  %s\n", e.At.UTC().Format(time.DateTime), e.Message)
	}
	return b.String()
}

func (s session) setPaused(ctx context.Context, r *v1alpha1.Rollout, paused bool) error {
	change := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused))
	if err := s.client.Patch(ctx, r, change); err != nil {
		return fmt.Errorf("change Rollout %s: %w", r.Name, err)
	}
	return nil
}

func pause(ctx context.Context, s session, args []string) error {
	r, err := s.active(ctx, args[0])
	if err != nil {
		return err
	}
	if err := s.setPaused(ctx, r, true); err != nil {
		return err
	}
	return s.say("rollout %s is paused: Machines that are under way go on, no further one starts", r.Name)
}

// resumeLimit is how long the controller may take to see that a stopped rollout is paused.
const resumeLimit = time.Minute

func resume(ctx context.Context, s session, args []string) error {
	r, err := s.active(ctx, args[0])
	if err != nil {
		return err
	}
	if r.Status.Phase != v1alpha1.RolloutStopped && !r.Spec.Paused {
		return s.say("rollout %s is %s: there is nothing to resume", r.Name, r.Status.Phase)
	}
	if r.Status.Phase == v1alpha1.RolloutStopped {
		// Letting a stopped rollout go on is a decision: it is recorded as a pause that ends.
		if err := s.setPaused(ctx, r, true); err != nil {
			return err
		}
		if r, err = s.awaitPaused(ctx, r.Name); err != nil {
			return err
		}
	}
	if err := s.setPaused(ctx, r, false); err != nil {
		return err
	}
	return s.say("rollout %s goes on", r.Name)
}

func (s session) awaitPaused(ctx context.Context, name string) (*v1alpha1.Rollout, error) {
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

// say tells the outcome.
func (s session) say(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if s.json {
		quoted, err := json.Marshal(map[string]string{"result": text})
		if err != nil {
			return fmt.Errorf("print as JSON: %w", err)
		}
		text = string(quoted)
	}
	_, err := fmt.Fprintln(s.out, text)
	return err
}
