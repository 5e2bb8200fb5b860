package scenario

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
)

// setImage sets the image of a NodeType and returns the Rollout to it.
func (d *demo) setImage(ctx context.Context, nodeType, image string) (*v1alpha1.Rollout, error) {
	change := fmt.Sprintf(`{"spec":{"osImageRef":{"name":%q}}}`, image)
	if err := d.patch(ctx, &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: nodeType}}, change); err != nil {
		return nil, err
	}
	return d.awaitRollout(ctx, nodeType)
}

// awaitRollout waits for a Rollout of the NodeType that was not active at the latest observation.
func (d *demo) awaitRollout(ctx context.Context, nodeType string) (*v1alpha1.Rollout, error) {
	before := d.observed.ActiveRollout(nodeType)
	err := d.waitUntil(ctx, func(s observation.Observation) (bool, error) {
		now := s.ActiveRollout(nodeType)
		return now != nil && (before == nil || now.Name != before.Name), nil
	})
	r := d.observed.ActiveRollout(nodeType)
	if err == nil && r == nil {
		d.assert(false, "NodeType "+nodeType+" has no Rollout that is not settled", "the changed NodeType makes a Rollout")
	}
	return r, err
}

// countReady counts the Machines of a NodeType that are Ready.
func countReady(s observation.Observation, nodeType string) int {
	n := 0
	for _, m := range s.MachinesOf(nodeType) {
		if observation.IsReady(m) {
			n++
		}
	}
	return n
}

// rollOut rolls a new image out to the NodeType of the first pool.
func (d *demo) rollOut(ctx context.Context) error {
	nodeType := d.fleet.firstPool().Spec.NodeTypeRef.Name
	d.screen.Step("NodeType %s gets image %s: one canary, then at most half at once", nodeType, d.images[1])
	r, err := d.setImage(ctx, nodeType, d.images[1])
	if err != nil || r == nil {
		return err
	}
	worst, canaryFirst, total := 0, true, len(d.observed.MachinesOf(nodeType))
	err = d.waitUntil(ctx, func(s observation.Observation) (bool, error) {
		r = s.Rollout(r.Name)
		moved := 0
		for _, m := range s.MachinesOf(nodeType) {
			if m.Spec.Asked() == r.Spec.Target() {
				moved++
			}
		}
		worst = max(worst, total-countReady(s, nodeType))
		canaryFirst = canaryFirst && (r.Status.Phase != v1alpha1.RolloutCanary || moved <= 1)
		return r.Status.Phase == v1alpha1.RolloutDone || r.Status.Phase == v1alpha1.RolloutStopped, nil
	})
	done := r.Status.Phase == v1alpha1.RolloutDone && int(r.Status.Targets.Done) == total
	passed, detail := done && canaryFirst && worst <= max(1, total/2), ""
	if !passed {
		detail = fmt.Sprintf("%s is %s, %d of %d done, canary first: %v, at most %d unavailable; %s", r.Name, r.Status.Phase, r.Status.Targets.Done, total, canaryFirst, worst, r.Status.StoppedBy)
	}
	d.assert(passed, detail,
		"the new image reached %d of %d Machines of %s, the canary first, never more than %d of them away", r.Status.Targets.Done, total, nodeType, worst)
	return err
}

// rollOutBadImage rolls an image out to the NodeType of the last pool whose driver is older than its OSImage says.
func (d *demo) rollOutBadImage(ctx context.Context) error {
	nodeType := d.fleet.lastPool().Spec.NodeTypeRef.Name
	d.screen.Step("NodeType %s gets image %s, whose driver is older than it says", nodeType, d.images[2])
	r, err := d.setImage(ctx, nodeType, d.images[2])
	if err != nil || r == nil {
		return err
	}
	err = d.waitUntil(ctx, func(s observation.Observation) (bool, error) {
		r = s.Rollout(r.Name)
		return r.Status.Phase == v1alpha1.RolloutStopped || r.Status.Phase == v1alpha1.RolloutDone, nil
	})
	left, total := countReady(d.observed, nodeType), len(d.observed.MachinesOf(nodeType))
	passed, detail := r.Status.Phase == v1alpha1.RolloutStopped && left == total-1, r.Status.StoppedBy
	if passed {
		d.screen.Note("stopped: %s", r.Status.StoppedBy)
	} else {
		detail = fmt.Sprintf("%s is %s, %d of %d Ready; %s", r.Name, r.Status.Phase, left, total, r.Status.StoppedBy)
	}
	d.assert(passed, detail,
		"the bad image stopped at its canary; the other %d of %d Machines run on", left, total)
	return err
}

// rollBack undoes the rollout of the bad image.
func (d *demo) rollBack(ctx context.Context) error {
	nodeType := d.fleet.lastPool().Spec.NodeTypeRef.Name
	d.screen.Step("undoing: ingot rollout undo %s", nodeType)
	if err := d.runIngot(ctx, "rollout", "undo", nodeType); err != nil {
		return err
	}
	r, err := d.awaitRollout(ctx, nodeType)
	if err != nil || r == nil {
		return err
	}
	back := func(s observation.Observation) bool {
		for _, m := range s.MachinesOf(nodeType) {
			if !observation.IsReady(m) || m.Status.Installed() != r.Spec.Target() {
				return false
			}
		}
		now := s.Rollout(r.Name)
		return now != nil && now.Status.Phase == v1alpha1.RolloutDone
	}
	err = d.waitUntil(ctx, func(s observation.Observation) (bool, error) { return back(s), nil })
	detail := ""
	if !back(d.observed) {
		for _, m := range d.observed.MachinesOf(nodeType) {
			detail += observation.UnmetChecks(m) + "\n"
		}
	}
	d.assert(back(d.observed), detail, "undone: every Machine of %s is back on its stable revision, and admitted", nodeType)
	return err
}

// runIngot runs a command of the program ingot on the management cluster and shows its output.
func (d *demo) runIngot(ctx context.Context, args ...string) error {
	said, err := d.ingot(ctx, args...)
	if err != nil {
		return err
	}
	d.screen.Note("%s", said)
	return nil
}

// ingot runs a command of the program ingot on the management cluster and returns its output.
func (d *demo) ingot(ctx context.Context, args ...string) (string, error) {
	program, err := d.env.Program("ingot")
	if err != nil {
		return "", err
	}
	said, err := exec.CommandContext(ctx, program, append(args, "--kubeconfig", d.env.Management.KubeconfigPath())...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ingot %s: %w: %s", strings.Join(args, " "), err, said)
	}
	return strings.TrimSpace(string(said)), nil
}

// repairServer unplugs the server that lost a GPU, replaces the GPU, and asserts that the server is admitted.
func (d *demo) repairServer(ctx context.Context) error {
	server := d.defectiveServer()
	d.screen.Step("a technician unplugs %s and reseats its GPU", server.Name())
	faults := server.Faults()
	faults.FallenGPUs = 0
	server.SetFaults(faults)
	server.PowerLoss()
	err := d.waitUntil(ctx, func(s observation.Observation) (bool, error) {
		return observation.IsReady(s.MachineOn(server.Name())), nil
	})
	passed := observation.IsReady(d.observed.MachineOn(server.Name()))
	detail := ""
	if !passed {
		detail = observation.UnmetChecks(d.observed.MachineOn(server.Name()))
	}
	d.assert(passed, detail, "powered on again, judged anew, and admitted with 8 of 8 GPUs")
	return err
}

// releaseMachine deletes the pinned Machine and asserts that its host is available again.
func (d *demo) releaseMachine(ctx context.Context) error {
	d.screen.Step("releasing %s: evict, power off, delete the Node, erase, return the host", pinnedMachine)
	m := d.observed.Machine(pinnedMachine)
	if m == nil {
		d.assert(false, "there is no Machine "+pinnedMachine, "the pinned Machine is released")
		return nil
	}
	if err := d.env.ManagementClient.Delete(ctx, m); err != nil {
		return fmt.Errorf("release %s: %w", pinnedMachine, err)
	}
	back := false
	err := d.waitUntil(ctx, func(s observation.Observation) (bool, error) {
		back = s.Machine(pinnedMachine) == nil && d.isHostReturned(s)
		return back, nil
	})
	if err != nil {
		return err
	}
	var node corev1.Node
	err = d.env.TenantClient.Get(ctx, client.ObjectKey{Name: pinnedMachine}, &node)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look for the released Node: %w", err)
	}
	gone := apierrors.IsNotFound(err)
	detail := ""
	if !back || !gone {
		detail = fmt.Sprintf("host back: %v; Node gone: %v; %s", back, gone, d.hostErrors())
		if m := d.observed.Machine(pinnedMachine); m != nil {
			detail += "\n" + observation.UnmetChecks(m)
		}
	}
	d.assert(back && gone, detail, "the released host is powered off, erased and available again, its Node gone")
	return nil
}

// isHostReturned reports whether the pinned host is available, powered off, erased and without a consumer.
func (d *demo) isHostReturned(s observation.Observation) bool {
	h := s.Host(d.pinnedHost())
	if h == nil || h.Status.Provisioning.State != metal3.StateAvailable || h.Spec.ConsumerRef != nil || h.Status.PoweredOn {
		return false
	}
	return d.provider().isErased(s, h)
}
