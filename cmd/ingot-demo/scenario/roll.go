package scenario

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
)

// setImage gives a NodeType another image, and returns when the Rollout to it is there.
func (t *story) setImage(ctx context.Context, nodeType, image string) (*v1alpha1.Rollout, error) {
	change := fmt.Sprintf(`{"spec":{"osImageRef":{"name":%q}}}`, image)
	if err := t.patch(ctx, &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: nodeType}}, change); err != nil {
		return nil, err
	}
	return t.newRollout(ctx, nodeType)
}

// newRollout waits for a Rollout of the NodeType that was not under way when the fleet was last looked at.
func (t *story) newRollout(ctx context.Context, nodeType string) (*v1alpha1.Rollout, error) {
	before := t.last.Active(nodeType)
	err := t.until(ctx, func(s observation.Snapshot) (bool, error) {
		now := s.Active(nodeType)
		return now != nil && (before == nil || now.Name != before.Name), nil
	})
	r := t.last.Active(nodeType)
	if err == nil && r == nil {
		t.promise(false, "NodeType "+nodeType+" has no Rollout that is not settled", "the changed NodeType makes a Rollout")
	}
	return r, err
}

// ready counts the Machines of a NodeType that are.
func ready(s observation.Snapshot, nodeType string) int {
	n := 0
	for _, m := range s.Of(nodeType) {
		if observation.Ready(m) {
			n++
		}
	}
	return n
}

// roll brings a new image to the first pool's NodeType.
func (t *story) roll(ctx context.Context) error {
	nodeType := t.site.First().Spec.NodeTypeRef.Name
	t.s.step("NodeType %s gets image %s: one canary, then at most half at once", nodeType, t.images[1])
	r, err := t.setImage(ctx, nodeType, t.images[1])
	if err != nil || r == nil {
		return err
	}
	worst, canaryFirst, total := 0, true, len(t.last.Of(nodeType))
	err = t.until(ctx, func(s observation.Snapshot) (bool, error) {
		r = s.Rollout(r.Name)
		moved := 0
		for _, m := range s.Of(nodeType) {
			if m.Spec.Asked() == r.Spec.Target() {
				moved++
			}
		}
		worst = max(worst, total-ready(s, nodeType))
		canaryFirst = canaryFirst && (r.Status.Phase != v1alpha1.RolloutCanary || moved <= 1)
		return r.Status.Phase == v1alpha1.RolloutDone || r.Status.Phase == v1alpha1.RolloutStopped, nil
	})
	done := r.Status.Phase == v1alpha1.RolloutDone && int(r.Status.Targets.Done) == total
	kept, detail := done && canaryFirst && worst <= max(1, total/2), ""
	if !kept {
		detail = fmt.Sprintf("%s is %s, %d of %d done, canary first: %v, at most %d unavailable; %s", r.Name, r.Status.Phase, r.Status.Targets.Done, total, canaryFirst, worst, r.Status.StoppedBy)
	}
	t.promise(kept, detail,
		"the new image reached %d of %d Machines of %s, the canary first, never more than %d of them away", r.Status.Targets.Done, total, nodeType, worst)
	return err
}

// stopBadImage gives the last pool's NodeType an image whose driver is older than it says.
func (t *story) stopBadImage(ctx context.Context) error {
	nodeType := t.site.Last().Spec.NodeTypeRef.Name
	t.s.step("NodeType %s gets image %s, whose driver is older than it says", nodeType, t.images[2])
	r, err := t.setImage(ctx, nodeType, t.images[2])
	if err != nil || r == nil {
		return err
	}
	err = t.until(ctx, func(s observation.Snapshot) (bool, error) {
		r = s.Rollout(r.Name)
		return r.Status.Phase == v1alpha1.RolloutStopped || r.Status.Phase == v1alpha1.RolloutDone, nil
	})
	left, total := ready(t.last, nodeType), len(t.last.Of(nodeType))
	kept, detail := r.Status.Phase == v1alpha1.RolloutStopped && left == total-1, r.Status.StoppedBy
	if kept {
		t.s.note("stopped: %s", r.Status.StoppedBy)
	} else {
		detail = fmt.Sprintf("%s is %s, %d of %d Ready; %s", r.Name, r.Status.Phase, left, total, r.Status.StoppedBy)
	}
	t.promise(kept, detail,
		"the bad image stopped at its canary; the other %d of %d Machines run on", left, total)
	return err
}

// undo sets the NodeType back, as its owner would.
func (t *story) undo(ctx context.Context) error {
	nodeType := t.site.Last().Spec.NodeTypeRef.Name
	t.s.step("undoing: ingot rollout undo %s", nodeType)
	if err := t.ingot(ctx, "rollout", "undo", nodeType); err != nil {
		return err
	}
	r, err := t.newRollout(ctx, nodeType)
	if err != nil || r == nil {
		return err
	}
	back := func(s observation.Snapshot) bool {
		for _, m := range s.Of(nodeType) {
			if !observation.Ready(m) || m.Status.Installed() != r.Spec.Target() {
				return false
			}
		}
		now := s.Rollout(r.Name)
		return now != nil && now.Status.Phase == v1alpha1.RolloutDone
	}
	err = t.until(ctx, func(s observation.Snapshot) (bool, error) { return back(s), nil })
	detail := ""
	if !back(t.last) {
		for _, m := range t.last.Of(nodeType) {
			detail += observation.Unmet(m) + "\n"
		}
	}
	t.promise(back(t.last), detail, "undone: every Machine of %s is back on its stable revision, and admitted", nodeType)
	return err
}

// ingot runs a command of the program ingot on the management cluster and shows its output.
func (t *story) ingot(ctx context.Context, args ...string) error {
	program, err := t.w.Program("ingot")
	if err != nil {
		return err
	}
	said, err := exec.CommandContext(ctx, program, append(args, "--kubeconfig", t.w.Management.KubeconfigPath())...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ingot %s: %w: %s", strings.Join(args, " "), err, said)
	}
	t.s.note("%s", strings.TrimSpace(string(said)))
	return nil
}
