package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/crash/relay"
)

// waitTimeout is far more than anything takes on a busy machine, the repetition of an attempt included.
const waitTimeout = 90 * time.Second

// quiet is how long the manager must have changed nothing before the next run is numbered.
const quiet = 150 * time.Millisecond

// scenario is a sequence of operations that is repeated.
type scenario struct {
	// prepare is done before the requests are numbered.
	prepare func(*testbed, context.Context) error
	// tell drives one run to its end and says what was not as it must be.
	tell func(s *testbed, ctx context.Context, run string) error
}

// point is the request at which the manager is killed. The zero value stands for none.
type point struct {
	story string
	when  relay.Moment
	n     int
}

// String returns the point as INGOT_CRASH names it.
func (p point) String() string { return fmt.Sprintf("%s:%s:%d", p.story, p.when, p.n) }

// result is the result of one run.
type result struct {
	requests []relay.Request
	took     time.Duration
	err      error
}

// run runs the scenario once, with the manager killed at the point.
func (s *testbed) run(ctx context.Context, st scenario, p point) result {
	if err := errors.Join(st.prepare(s, ctx), s.awaitQuiet(ctx)); err != nil {
		return result{err: fmt.Errorf("before the run: %w", err)}
	}
	s.ledger.begin()
	s.ironic.begin()
	if p.n > 0 {
		s.steps.Arm(p.n, p.when, s.replaceManager)
	} else {
		s.steps.Begin()
	}
	began := time.Now()
	name := fmt.Sprintf("%s-%s-%d-%d", p.story, p.when, p.n, began.UnixMilli()%1e6)
	if p.n == 0 {
		name = fmt.Sprintf("%s-undisturbed-%d", p.story, began.UnixMilli()%1e6)
	}
	err := st.tell(s, ctx, name)
	took := time.Since(began)
	err = errors.Join(err, s.awaitQuiet(ctx), s.manager.health())
	return result{requests: s.steps.Requests(), took: took, err: err}
}

// awaitQuiet waits until a manager is there and changes nothing any more, so that every request is counted for the run that it belongs to.
func (s *testbed) awaitQuiet(ctx context.Context) error {
	last, since := -1, time.Now()
	return until(ctx, waitTimeout, "the manager changes nothing any more", func() (bool, error) {
		if now := len(s.steps.Requests()); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) >= quiet && s.manager.settled(), nil
	})
}

func (s *testbed) prepareLife(ctx context.Context) error { return s.awaitHostsAvailable(ctx, "life") }

// runLife creates a Machine, waits until it is Ready, and releases it.
func (s *testbed) runLife(ctx context.Context, name string) error {
	machine, err := s.createReadyMachine(ctx, name, lived)
	if err != nil {
		return err
	}
	if machine.Status.Attempt != 1 {
		return fmt.Errorf("the Machine needed %d attempts, want 1", machine.Status.Attempt)
	}
	for _, check := range []func(context.Context, *v1alpha1.Machine) error{
		s.checkInstalledOnce, s.awaitNoTokens, s.awaitTokenRemoved, s.releaseMachine, s.checkInstalledOnce, s.awaitNoTokens, s.checkNoClaimSecrets,
	} {
		if err := check(ctx, machine); err != nil {
			return err
		}
	}
	return nil
}

// createReadyMachine creates a Machine and waits until it is Ready.
func (s *testbed) createReadyMachine(ctx context.Context, name, nodeType string) (*v1alpha1.Machine, error) {
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: teamNamespace, Name: name},
		Spec: v1alpha1.MachineSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, TenantClusterRef: v1alpha1.LocalReference{Name: tenantName},
		},
	}
	if err := s.env.ManagementClient.Create(ctx, machine); err != nil {
		return nil, err
	}
	return machine, s.awaitMachineReady(ctx, machine)
}

// awaitMachineReady waits until the Machine is Ready and the gate of its Node is lifted.
func (s *testbed) awaitMachineReady(ctx context.Context, m *v1alpha1.Machine) error {
	err := until(ctx, waitTimeout, "Machine "+m.Name+" Ready", func() (bool, error) {
		if err := s.readMachine(ctx, m); err != nil {
			return false, err
		}
		if m.Status.Phase != v1alpha1.MachineReady || !meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady) {
			return false, nil
		}
		var node corev1.Node
		if err := s.env.TenantClient.Get(ctx, client.ObjectKey{Name: m.Name}, &node); err != nil {
			return false, client.IgnoreNotFound(err) // what was read of the Machine is not the newest
		}
		gated := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == gateKey })
		return !gated && !node.Spec.Unschedulable, nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, s.describe(ctx, m))
	}
	return nil
}

// releaseMachine deletes the Machine and waits until nothing is left of it and every host is available.
func (s *testbed) releaseMachine(ctx context.Context, m *v1alpha1.Machine) error {
	if err := s.env.ManagementClient.Delete(ctx, m); err != nil {
		return err
	}
	err := until(ctx, waitTimeout, "Machine "+m.Name+" gone", func() (bool, error) {
		err := s.readMachine(ctx, m)
		if err == nil || client.IgnoreNotFound(err) != nil {
			return false, err
		}
		err = s.env.TenantClient.Get(ctx, client.ObjectKey{Name: m.Name}, &corev1.Node{})
		return err != nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, s.describe(ctx, m))
	}
	return s.awaitHostsAvailable(ctx, "life")
}

// readMachine reads the Machine and checks the invariants.
func (s *testbed) readMachine(ctx context.Context, m *v1alpha1.Machine) error {
	if err := errors.Join(s.manager.health(), s.watch.Check(ctx)); err != nil {
		return err
	}
	return s.env.ManagementClient.Get(ctx, client.ObjectKeyFromObject(m), m)
}

// awaitHostsAvailable waits until every host of the stories is nobody's, off, and erased if it was ever installed.
func (s *testbed) awaitHostsAvailable(ctx context.Context, names ...string) error {
	var missing string
	err := until(ctx, waitTimeout, "the hosts are available", func() (bool, error) {
		var hosts metal3.BareMetalHostList
		var records v1alpha1.HostRecordList
		if err := errors.Join(s.manager.health(), s.watch.Check(ctx), s.env.ManagementClient.List(ctx, &hosts), s.env.ManagementClient.List(ctx, &records)); err != nil {
			return false, err
		}
		missing = ""
		for _, h := range hosts.Items {
			at := slices.IndexFunc(records.Items, func(r v1alpha1.HostRecord) bool { return r.Name == h.Name })
			is := s.kind.isMetal3 && at < 0 && isServedAvailable(h) || !s.kind.isMetal3 && at >= 0 && isAvailable(h, records.Items[at])
			if slices.Contains(names, h.Labels[storyLabel]) && !is {
				missing += fmt.Sprintf("\n    %s is %s, powered on %v, consumer %v, error %q", h.Name, h.Status.Provisioning.State, h.Status.PoweredOn, h.Spec.ConsumerRef, h.Status.ErrorMessage)
			}
		}
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("%w:%s", err, missing)
	}
	return nil
}

func isAvailable(h metal3.BareMetalHost, r v1alpha1.HostRecord) bool {
	return h.Status.Provisioning.State == metal3.StateAvailable && h.Spec.ConsumerRef == nil && !h.Status.PoweredOn &&
		r.Spec.Machine == nil && r.Status.Installed == nil
}

// checkInstalledOnce: since the requests are numbered one agent began to write, once, and no Machine claimed a second host.
func (s *testbed) checkInstalledOnce(_ context.Context, m *v1alpha1.Machine) error {
	var errs []error
	installs := s.ledger.count()
	maps.Copy(installs, s.ironic.installs())
	if len(installs) != 1 || slices.Max(slices.Collect(maps.Values(installs))) != 1 {
		errs = append(errs, fmt.Errorf("agents began to write so often, by server: %v; want 1 on one server", installs))
	}
	for uid, hosts := range claimsByUID(s.steps.Requests()) {
		if len(hosts) > 1 {
			errs = append(errs, fmt.Errorf("machine %s (uid %s) claimed %s", m.Name, uid, strings.Join(hosts, " and ")))
		}
	}
	return errors.Join(errs...)
}

// awaitNoTokens waits until no bootstrap token is left in the tenant: its owner deletes it right after the join.
func (s *testbed) awaitNoTokens(ctx context.Context, _ *v1alpha1.Machine) error {
	var left []corev1.Secret
	err := until(ctx, waitTimeout, "no bootstrap token is left", func() (found bool, err error) {
		left, err = s.bootstrapTokens(ctx)
		return len(left) == 0, err
	})
	if err != nil && len(left) > 0 {
		return fmt.Errorf("%w: there are %d, the first is %s", err, len(left), left[0].Name)
	}
	return err
}

func (s *testbed) bootstrapTokens(ctx context.Context) ([]corev1.Secret, error) {
	var secrets corev1.SecretList
	err := s.env.TenantClient.List(ctx, &secrets, client.InNamespace(metav1.NamespaceSystem), client.MatchingFields{"type": string(corev1.SecretTypeBootstrapToken)})
	return secrets.Items, err
}

// cleanUp removes what a failed run left, so that the next run begins as the others did.
func (s *testbed) cleanUp(ctx context.Context) error {
	if err := s.env.ManagementClient.DeleteAllOf(ctx, &v1alpha1.Machine{}, client.InNamespace(teamNamespace)); err != nil {
		return err
	}
	s.roller = nil
	if err := s.awaitHostsAvailable(ctx, slices.Collect(maps.Keys(s.kind.scenarios))...); err != nil {
		return err
	}
	left, err := s.bootstrapTokens(ctx)
	for i := range left {
		err = errors.Join(err, client.IgnoreNotFound(s.env.TenantClient.Delete(ctx, &left[i])))
	}
	return err
}

// awaitTokenRemoved waits until no claim Secret of the Machine holds a token any more.
func (s *testbed) awaitTokenRemoved(ctx context.Context, m *v1alpha1.Machine) error {
	return until(ctx, waitTimeout, "the token is taken out of the claim Secret", func() (bool, error) {
		secrets, err := s.claimSecrets(ctx, m)
		return len(secrets) == 1 && secrets[0].Data["bootstrapToken"] == nil, err
	})
}

// checkNoClaimSecrets: no claim Secret of the Machine is left.
func (s *testbed) checkNoClaimSecrets(ctx context.Context, m *v1alpha1.Machine) error {
	secrets, err := s.claimSecrets(ctx, m)
	if len(secrets) > 0 {
		return fmt.Errorf("claim Secret %s is left over", secrets[0].Name)
	}
	return err
}

func (s *testbed) claimSecrets(ctx context.Context, m *v1alpha1.Machine) ([]corev1.Secret, error) {
	var secrets corev1.SecretList
	err := s.env.ManagementClient.List(ctx, &secrets, client.InNamespace(hostNamespace), client.MatchingLabels{v1alpha1.LabelMachine: string(m.UID)})
	return secrets.Items, err
}

// describe describes the Machine and its host for the message of a failure.
func (s *testbed) describe(ctx context.Context, m *v1alpha1.Machine) string {
	var out strings.Builder
	fmt.Fprintf(&out, "    Machine is %s, attempt %d, waits for %q\n", m.Status.Phase, m.Status.Attempt, m.Status.WaitingFor)
	for _, c := range m.Status.Conditions {
		fmt.Fprintf(&out, "    %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	if m.Status.Verdict != nil {
		for _, c := range m.Status.Verdict.Checks {
			if c.Result != v1alpha1.CheckPass {
				fmt.Fprintf(&out, "    check %s %s: expected %s, observed %s\n", c.Name, c.Result, c.Expected, c.Observed)
			}
		}
	}
	var records v1alpha1.HostRecordList
	if err := s.env.ManagementClient.List(ctx, &records); err != nil {
		return out.String() + err.Error()
	}
	for _, r := range records.Items {
		if w := r.Status.Wanted; w != nil {
			fmt.Fprintf(&out, "    %s: attempt %d %s %q, %s %s; kept of it: %+v; server: %s\n",
				r.Name, w.Number, w.Operation, w.Outcome, w.Reason, w.Message, r.Status.Progress(), s.env.Rack.Server(r.Name).State().Activity)
		}
	}
	return out.String()
}
