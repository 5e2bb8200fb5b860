package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/require"
)

// waitTimeout is much longer than any step of these servers takes on a busy machine.
const waitTimeout = 2 * time.Minute

// fault is a fault of one server and what must follow from it.
type fault struct {
	name string
	// faults are set once the host is available.
	faults rack.Faults
	// wrongPassword means that the Secret of the host has a wrong password.
	wrongPassword bool
	expect        check
}

// faultCase is a fault with the server that has it. Machine and server have the name of the fault.
type faultCase struct {
	*pipeline
	name   string
	server *rack.Server
}

func (s *faultCase) await(ctx context.Context, what string, ok func(observation) bool) (observation, error) {
	return s.fleet.await(ctx, waitTimeout, s.name, s.name, what, ok)
}

func (s *faultCase) ready(ctx context.Context) (observation, error) {
	return s.await(ctx, "Machine Ready", observation.isReady)
}

// stalledWrites keeps an installation in the middle of its writes, so that what a test does then it does there on a slow machine too.
var stalledWrites = rack.Faults{StallAfter: 3 << 20}

func isWriting(v observation) bool { return v.step() == "Writing" }

func faults() []fault {
	return []fault{
		{name: "bmc-slow", faults: rack.Faults{BMC: bmc.Faults{Hang: 2, ServerErrors: 6, Busy: 4, LazyCollections: true}, StallAfter: stalledWrites.StallAfter}, expect: slowBMC},
		{name: "power-on-late", faults: rack.Faults{BMC: bmc.Faults{SilentPowerOn: 2}}, expect: becomesReady},
		{name: "power-on-never", faults: rack.Faults{BMC: bmc.Faults{SilentPowerOn: bmc.All}}, expect: then(failsFor("PowerOnIgnored", "power supplies"), mended, released)},
		{name: "null-override", faults: rack.Faults{BMC: bmc.Faults{NullBootTarget: true}}, expect: then(nullOverride, mended, becomesReady)},
		{name: "dead-nic", faults: rack.Faults{DeadBootNIC: true}, expect: then(failsFor("NoBootRequest", "boot NIC"), mended, retried, becomesReady)},
		{name: "bad-disk", faults: rack.Faults{DiskErrorAt: 2 << 20}, expect: then(failsFor("DiskError", ""), eraseFails)},
		{name: "wrong-image", faults: rack.Faults{CorruptImage: true}, expect: then(wrongImage, mended, released)},
		{name: "loss-writing", faults: rack.Faults{PowerLossAfter: 3 << 20}, expect: bootsTwice},
		{name: "loss-loading", faults: rack.Faults{PowerLossAt: rack.StepInitrd}, expect: bootsTwice},
		{name: "loss-first-boot", faults: rack.Faults{PowerLossAt: rack.StepDiskBoot}, expect: becomesReady},
		{name: "boot-loop", faults: rack.Faults{BootLoop: true}, expect: failsFor("BootLoop", "")},
		{name: "bad-password", wrongPassword: true, expect: badPassword},
		{name: "gone-installing", faults: stalledWrites, expect: then(deletedAt(v1alpha1.MachineProvisioning, isWriting), mended)},
		{name: "gone-joining", expect: deletedAt(v1alpha1.MachineJoining, func(observation) bool { return true })},
		{name: "gone-validating", expect: deletedAt(v1alpha1.MachineValidating, func(v observation) bool { return v.node != nil })},
		{name: "reboots", expect: reboots},
		{name: "node-deleted", expect: nodeDeleted},
		{name: "gpu-lost", expect: gpuLost},
		{name: "worked-on", expect: workedOn},
	}
}

type check = func(ctx context.Context, s *faultCase) error

// then runs the checks one after the other.
func then(checks ...check) check {
	return func(ctx context.Context, s *faultCase) error {
		for _, a := range checks {
			if err := a(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
}

// becomesReady checks that the Machine becomes Ready without help.
func becomesReady(ctx context.Context, s *faultCase) error {
	_, err := s.ready(ctx)
	return err
}

// mended repairs the server.
func mended(_ context.Context, s *faultCase) error {
	s.server.SetFaults(rack.Faults{})
	return nil
}

// retried requests the retry that the message asks for.
func retried(ctx context.Context, s *faultCase) error {
	v, _, err := s.fleet.observe(s.name, s.name)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"mended"}}}`, v1alpha1.AnnotationRetry)
	return s.env.ManagementClient.Patch(ctx, v.host, client.RawPatch(types.MergePatchType, patch))
}

// released deletes the Machine and waits until its host is available.
func released(ctx context.Context, s *faultCase) error {
	v, _, err := s.fleet.observe(s.name, s.name)
	if err != nil {
		return err
	}
	return s.release(ctx, v)
}

// release deletes the Machine and expects that nothing of it is left.
func (s *faultCase) release(ctx context.Context, v observation) error {
	if err := s.env.ManagementClient.Delete(ctx, v.machine); err != nil {
		return err
	}
	if _, err := s.await(ctx, "Machine and Node gone, host back", func(v observation) bool { return v.isBack() && v.node == nil }); err != nil {
		return err
	}
	tokens, err := s.tokensOf(ctx, v.machine)
	if len(tokens) != 0 {
		return fmt.Errorf("bootstrap tokens %v are left in the tenant", tokens)
	}
	return err
}

// eraseFails: what cannot be erased is kept out of the pool, and its Machine says why it cannot go.
func eraseFails(ctx context.Context, s *faultCase) error {
	v, _, err := s.fleet.observe(s.name, s.name)
	if err != nil {
		return err
	}
	if err := s.env.ManagementClient.Delete(ctx, v.machine); err != nil {
		return err
	}
	v, err = s.await(ctx, "Ready=False with reason EraseFailed", func(v observation) bool {
		return v.phase() == v1alpha1.MachineReleasing && v.is(v1alpha1.ConditionReady, v1alpha1.ReasonEraseFailed)
	})
	if err != nil {
		return err
	}
	if !strings.Contains(v.condition(v1alpha1.ConditionReady).Message, "stays out of the pool") || v.host.Spec.ConsumerRef == nil || v.record.Status.Erased != nil {
		return fmt.Errorf("a host that was not erased is free, or nobody is told why: %s", v)
	}
	return nil
}

func TestEveryFaultEndsAsItMust(t *testing.T) {
	require.Turn(t, 4)
	t.Parallel()
	all := faults()
	profile, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	var servers []rack.ServerSpec
	var wrongPassword []string
	for _, f := range all {
		servers = append(servers, rack.ServerSpec{Name: f.name, Profile: profile})
		if f.wrongPassword {
			wrongPassword = append(wrongPassword, f.name)
		}
	}
	p := startPipeline(t, servers, wrongPassword...)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	began := time.Now()
	results := make([]chan error, len(all))
	for i, f := range all {
		results[i] = make(chan error, 1)
		go func() {
			err := p.play(ctx, f)
			t.Logf("%5.1f s  %s: %v", time.Since(began).Seconds(), f.name, err)
			results[i] <- err
		}()
	}
	for i, f := range all {
		err := <-results[i]
		t.Run(f.name, func(t *testing.T) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("the manager is killed in the middle of installs", func(t *testing.T) { p.killManager(ctx, t) })
	t.Run("the tenant is away for a while", func(t *testing.T) { p.tenantAway(ctx, t) })
	p.judge(ctx, t)
	t.Logf("%.0f s after the pipeline's start", time.Since(began).Seconds())
}

// play brings one fault about.
func (p *pipeline) play(ctx context.Context, f fault) error {
	s := &faultCase{pipeline: p, name: f.name, server: p.env.Rack.Server(f.name)}
	if !f.wrongPassword {
		if _, err := s.await(ctx, "host available", func(v observation) bool { return v.host != nil && v.host.Status.Provisioning.State == "available" }); err != nil {
			return err
		}
	}
	s.server.SetFaults(f.faults)
	if err := p.order(ctx, f.name, f.name); err != nil {
		return err
	}
	return f.expect(ctx, s)
}

// failsFor expects three attempts that fail for one reason, which the Machine shows, and then rest until a person acts.
func failsFor(reason, says string) check {
	return func(ctx context.Context, s *faultCase) error {
		v, err := s.await(ctx, "Provisioned=False for good with reason "+reason, func(v observation) bool {
			return v.is(v1alpha1.ConditionProvisioned, reason) && v.host != nil && strings.Contains(v.host.Status.ErrorMessage, "not tried again by itself")
		})
		if err != nil {
			return err
		}
		return neverRan(s, v, says)
	}
}

// neverRan: the Machine did not get beyond Provisioning, its host says why, and nothing was booted from the disk.
func neverRan(s *faultCase, v observation, says string) error {
	message := v.host.Status.ErrorMessage
	ready := v.condition(v1alpha1.ConditionReady)
	switch {
	case !strings.Contains(message, says):
		return fmt.Errorf("the message does not say %q: %s", says, message)
	case ready.Status != metav1.ConditionFalse || ready.Reason != v.condition(v1alpha1.ConditionProvisioned).Reason:
		return fmt.Errorf("ready is %s for %s: %s", ready.Status, ready.Reason, v)
	case v.phase() != v1alpha1.MachineProvisioning || v.host.Spec.ConsumerRef == nil:
		return fmt.Errorf("a failed installation lost its Machine or its host: %s", v)
	case v.record.Status.Installed != nil:
		return fmt.Errorf("a failed installation counts as installed: %s", v)
	case s.server.State().OS != "" || v.node != nil:
		return fmt.Errorf("the disk was booted: %s", v)
	}
	return nil
}

func slowBMC(ctx context.Context, s *faultCase) error {
	if _, err := s.await(ctx, "writing", isWriting); err != nil {
		return err
	}
	s.server.SetFaults(rack.Faults{BMC: bmc.Faults{Hang: 1, ServerErrors: 4, Busy: 2}})
	_, err := s.ready(ctx)
	return err
}

func nullOverride(ctx context.Context, s *faultCase) error {
	v, err := s.await(ctx, "Provisioned=False with reason BMCUnsupported", func(v observation) bool { return v.is(v1alpha1.ConditionProvisioned, "BMCUnsupported") })
	if err != nil {
		return err
	}
	if s.server.State().Boots != 0 {
		return fmt.Errorf("the server was booted %d times without an override", s.server.State().Boots)
	}
	return neverRan(s, v, "restart the BMC")
}

func wrongImage(ctx context.Context, s *faultCase) error {
	if err := failsFor("DigestMismatch", "")(ctx, s); err != nil {
		return err
	}
	v, _, _ := s.fleet.observe(s.name, s.name)
	if v.record.Status.Failures != 1 {
		return fmt.Errorf("a wrong image was tried %d times", v.record.Status.Failures)
	}
	disk, err := os.Open(s.server.DiskPath())
	if err != nil {
		return err
	}
	defer disk.Close()
	first := make([]byte, 1<<20)
	if _, err := io.ReadFull(disk, first); err != nil {
		return err
	}
	if !bytes.Equal(first, make([]byte, len(first))) {
		return fmt.Errorf("the first MiB of the disk is not empty: it may boot")
	}
	return nil
}

// bootsTwice expects one attempt, in which the server booted the agent a second time.
func bootsTwice(ctx context.Context, s *faultCase) error {
	v, err := s.ready(ctx)
	if err != nil {
		return err
	}
	began, succeeded := s.fleet.attempts(v.machine)
	if a := v.record.Status.Attempt; a.Boots != 2 || began != 1 || succeeded != 1 {
		return fmt.Errorf("expected one attempt with 2 boots, seen %d with %d boots in the last", began, a.Boots)
	}
	return nil
}

func badPassword(ctx context.Context, s *faultCase) error {
	if _, err := s.await(ctx, "host error BMCUnauthorized", func(v observation) bool {
		return v.host != nil && strings.HasPrefix(v.host.Status.ErrorMessage, v1alpha1.ReasonBMCUnauthorized)
	}); err != nil {
		return err
	}
	v, err := s.await(ctx, "Claimed=False with reason NoHostAvailable", func(v observation) bool {
		return v.is(v1alpha1.ConditionClaimed, v1alpha1.ReasonNoHostAvailable) && strings.Contains(v.condition(v1alpha1.ConditionClaimed).Message, "in error")
	})
	if err != nil {
		return err
	}
	if v.host.Spec.ConsumerRef != nil {
		return fmt.Errorf("a host in error was claimed: %s", v)
	}
	var secret corev1.Secret
	if err := s.env.ManagementClient.Get(ctx, client.ObjectKey{Namespace: hostNamespace, Name: s.name + "-bmc"}, &secret); err != nil {
		return err
	}
	_, password := s.server.Credentials()
	secret.Data["password"] = []byte(password)
	if err := s.env.ManagementClient.Update(ctx, &secret); err != nil {
		return err
	}
	_, err = s.ready(ctx)
	return err
}

// deletedAt deletes the Machine in a phase and expects that nothing of it is left.
func deletedAt(phase v1alpha1.MachinePhase, at func(observation) bool) check {
	return func(ctx context.Context, s *faultCase) error {
		// A short phase may be over when it is seen; that it was entered is kept.
		v, err := s.await(ctx, string(phase), func(v observation) bool { return v.entered(phase) > 0 && at(v) })
		if err != nil {
			return err
		}
		return s.release(ctx, v)
	}
}
