package drain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/connect"
)

// options are the flags of the command.
type options struct {
	powerOff, undo, wait bool
	timeout              time.Duration
}

// Command is `ingot drain MACHINE`.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use: "drain MACHINE --power-off | --undo", Short: "Empty a Machine's node and power its server off, for work on the hardware; --undo powers it on again",
		Args: cobra.ExactArgs(1),
	}
	flags := connect.AddFlags(c)
	var o options
	c.Flags().BoolVar(&o.powerOff, "power-off", false, "evict the node's pods, then power the server off; node and disks are kept")
	c.Flags().BoolVar(&o.undo, "undo", false, "power the server on again; the node takes pods when its verdict passes")
	c.Flags().BoolVar(&o.wait, "wait", true, "wait until the power-off is confirmed or, with --undo, until the Machine is Ready")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to wait; 0: until it is done")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if o.powerOff == o.undo {
			return cli.Usagef(cmd, "expected either --power-off or --undo")
		}
		asJSON, err := flags.IsJSON(cmd)
		if err != nil {
			return err
		}
		k, err := flags.Client(cmd)
		if err != nil {
			return err
		}
		s := session{client: k, out: cmd.OutOrStdout(), json: asJSON, options: o}
		return s.run(cmd.Context(), flags.Namespace(), args[0])
	}
	return c
}

// session is one command on one cluster.
type session struct {
	options
	client client.Client
	out    io.Writer
	json   bool
}

func (s session) run(ctx context.Context, namespace, name string) error {
	m, err := connect.FindMachine(ctx, s.client, namespace, name)
	if err != nil {
		return err
	}
	if err := s.checkMachine(m); err != nil {
		return err
	}
	if s.undo && !m.Spec.PowerOff && m.Status.PowerOff == nil {
		return cli.WriteResult(s.out, s.json, fmt.Sprintf("Machine %s/%s is not powered off by spec.powerOff: there is nothing to undo", m.Namespace, m.Name))
	}
	// The uid makes the request fail if the Machine was replaced by another one of its name since it was read.
	change := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"powerOff":%t}}`, m.UID, s.powerOff)
	if err := s.client.Patch(ctx, m, client.RawPatch("application/merge-patch+json", change)); err != nil {
		return fmt.Errorf("set spec.powerOff of Machine %s/%s: %w", m.Namespace, m.Name, err)
	}
	if !s.wait {
		return cli.WriteResult(s.out, s.json, s.requestedText(m))
	}
	return s.await(ctx, m)
}

// checkMachine refuses a Machine that nothing would be done with.
func (s session) checkMachine(m *v1alpha1.Machine) error {
	name := m.Namespace + "/" + m.Name
	switch {
	case m.DeletionTimestamp != nil:
		return fmt.Errorf("nothing to do: Machine %s is being deleted, for which its server is drained, powered off and erased; ingot why -n %s %s shows how far it is", name, m.Namespace, m.Name)
	case s.powerOff && m.Status.HostRef == nil:
		return fmt.Errorf("there is no server to power off: Machine %s has no host; ingot why -n %s %s says what it waits for", name, m.Namespace, m.Name)
	}
	return nil
}

// requestedText says what is done, and how to follow it.
func (s session) requestedText(m *v1alpha1.Machine) string {
	follow := fmt.Sprintf("ingot why -n %s %s", m.Namespace, m.Name)
	if s.undo {
		return fmt.Sprintf("the server of Machine %s/%s is to be on; its node takes pods when the verdict about its new boot passes: %s", m.Namespace, m.Name, follow)
	}
	return fmt.Sprintf("Machine %s/%s is drained and then powered off; do not touch the server before its reason is %s: %s", m.Namespace, m.Name, v1alpha1.ReasonPoweredOff, follow)
}

// await waits until the Machine is as requested, and prints what it waits for whenever that changes.
func (s session) await(ctx context.Context, m *v1alpha1.Machine) error {
	limited := ctx
	if s.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	printed := ""
	for {
		ready := currentReady(m)
		if s.isDone(m, ready) {
			return cli.WriteResult(s.out, s.json, doneText(m, ready))
		}
		if text := progressText(m, ready); text != printed && !s.json {
			printed = text
			if _, err := fmt.Fprintln(s.out, text); err != nil {
				return err
			}
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("stopped waiting; the manager goes on: %s; %s", progressText(m, ready), s.requestedText(m))
		case <-time.After(time.Second):
		}
		if err := s.read(limited, m); err != nil && limited.Err() == nil {
			return err
		}
	}
}

// read reads the Machine again. It returns an error if nobody wants any more what this command waits for.
func (s session) read(ctx context.Context, m *v1alpha1.Machine) error {
	now := &v1alpha1.Machine{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(m), now); err != nil {
		return fmt.Errorf("read Machine %s/%s: %w", m.Namespace, m.Name, err)
	}
	switch {
	case now.UID != m.UID || now.DeletionTimestamp != nil:
		return fmt.Errorf("stopped waiting: Machine %s/%s was deleted meanwhile; its server is powered off, erased and given back", m.Namespace, m.Name)
	case now.Spec.PowerOff != s.powerOff:
		return errors.New("somebody else has changed spec.powerOff meanwhile: agree who works on the server, then run this command again")
	}
	*m = *now
	return nil
}

// currentReady returns the condition Ready if it is about the newest spec of the Machine. Without that check: spec.powerOff is cleared and set again,
// and the power-off of the time before counts, while the server is being powered on.
func currentReady(m *v1alpha1.Machine) *metav1.Condition {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.ObservedGeneration < m.Generation {
		return nil
	}
	return c
}

func (s session) isDone(m *v1alpha1.Machine, ready *metav1.Condition) bool {
	switch {
	case ready == nil:
		return false
	case s.undo:
		return ready.Status == metav1.ConditionTrue && m.Status.PowerOff == nil
	default:
		return ready.Status == metav1.ConditionFalse && ready.Reason == v1alpha1.ReasonPoweredOff
	}
}

func doneText(m *v1alpha1.Machine, ready *metav1.Condition) string {
	if ready.Status == metav1.ConditionTrue {
		return fmt.Sprintf("Machine %s/%s is Ready: its node takes pods", m.Namespace, m.Name)
	}
	return ready.Message
}

func progressText(m *v1alpha1.Machine, ready *metav1.Condition) string {
	if ready == nil {
		return fmt.Sprintf("Machine %s/%s: waiting for ingot-manager to see the request", m.Namespace, m.Name)
	}
	return fmt.Sprintf("%s  %s: %s", m.Status.Phase, ready.Reason, ready.Message)
}
