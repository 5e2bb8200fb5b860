package crash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// prepareRollout: the Machine is Ready with the stable revision, and nothing rolls.
func (s *testbed) prepareRollout(ctx context.Context) error {
	if s.roller == nil {
		if err := s.awaitHostsAvailable(ctx, "rollout"); err != nil {
			return err
		}
		machine, err := s.createReadyMachine(ctx, fmt.Sprintf("rolled-%d", time.Now().UnixMilli()%1e6), rolled)
		if err != nil {
			return err
		}
		s.roller = machine
	}
	_, err := s.awaitRolledOut(ctx, s.roller.DeepCopy(), "")
	return err
}

// runRollout tells one rollout: the NodeType gets the other image, and the Machine is installed again where it is.
func (s *testbed) runRollout(ctx context.Context, _ string) error {
	before := s.roller.DeepCopy()
	if err := s.env.ManagementClient.Get(ctx, client.ObjectKeyFromObject(before), before); err != nil {
		return err
	}
	if err := s.changeImage(ctx); err != nil {
		return err
	}
	now := before.DeepCopy()
	rollout, err := s.awaitRolledOut(ctx, now, before.Status.Revision)
	if err != nil {
		return err
	}
	switch {
	case rollout == nil || rollout.Spec.From != before.Status.Revision:
		err = fmt.Errorf("no Rollout from revision %s was made", before.Status.Revision)
	case now.Status.Attempt != before.Status.Attempt+1:
		err = fmt.Errorf("the Machine is at attempt %d after attempt %d, want one more", now.Status.Attempt, before.Status.Attempt)
	case *now.Status.HostRef != *before.Status.HostRef:
		err = fmt.Errorf("the Machine moved from host %s to %s", before.Status.HostRef.Name, now.Status.HostRef.Name)
	case now.Status.NodeRef.UID == before.Status.NodeRef.UID:
		err = errors.New("the Node object is still the one of the system before")
	}
	for _, check := range []func(context.Context, *v1alpha1.Machine) error{s.checkInstalledOnce, s.awaitNoTokens, s.awaitTokenRemoved} {
		if err == nil {
			err = check(ctx, now)
		}
	}
	return err
}

// changeImage gives the NodeType the image that it does not have, and user data that it never had: its revision is a new one.
func (s *testbed) changeImage(ctx context.Context) error {
	nodeType := &v1alpha1.NodeType{}
	if err := s.env.ManagementClient.Get(ctx, client.ObjectKey{Name: rolled}, nodeType); err != nil {
		return err
	}
	patch := client.MergeFrom(nodeType.DeepCopy())
	other := s.images[0]
	if nodeType.Spec.OSImageRef.Name == other {
		other = s.images[1]
	}
	nodeType.Spec.OSImageRef.Name = other
	nodeType.Spec.UserData = fmt.Sprintf("#cloud-config\n# after generation %d\npackages: [lldpd]\n", nodeType.Generation)
	return s.env.ManagementClient.Patch(ctx, nodeType, patch)
}

// awaitRolledOut waits until the NodeType's only revision is another one than old, its Machine is Ready with it, and every Rollout is
// settled. It returns the Rollout to that revision, if there is one.
func (s *testbed) awaitRolledOut(ctx context.Context, m *v1alpha1.Machine, old string) (made *v1alpha1.Rollout, err error) {
	var nodeType v1alpha1.NodeType
	var rollouts v1alpha1.RolloutList
	err = until(ctx, waitTimeout, "the rollout is done", func() (bool, error) {
		if err := errors.Join(s.readMachine(ctx, m), s.env.ManagementClient.Get(ctx, client.ObjectKey{Name: rolled}, &nodeType), s.env.ManagementClient.List(ctx, &rollouts)); err != nil {
			return false, err
		}
		status := nodeType.Status
		if status.ObservedGeneration != nodeType.Generation || status.TargetRevision == old || status.StableRevision != status.TargetRevision || m.Status.Revision != status.TargetRevision {
			return false, nil
		}
		made = nil
		for i := range rollouts.Items {
			if !rollouts.Items[i].Status.Phase.IsFinal() {
				return false, nil
			}
			// Its name ends in the generation of the NodeType that it was made for.
			if rollouts.Items[i].Name == fmt.Sprintf("%s-%d", status.TargetRevision, nodeType.Generation) {
				made = &rollouts.Items[i]
			}
		}
		return true, nil
	})
	if err == nil {
		err = s.awaitMachineReady(ctx, m)
	}
	if err != nil {
		err = fmt.Errorf("%w\n    NodeType: stable %s, target %s\n%s%s", err, nodeType.Status.StableRevision, nodeType.Status.TargetRevision, describeRollouts(rollouts), s.describe(ctx, m))
	}
	return made, err
}

// describeRollouts is for failures.
func describeRollouts(rollouts v1alpha1.RolloutList) string {
	var out strings.Builder
	for _, r := range rollouts.Items {
		fmt.Fprintf(&out, "    Rollout %s from %s is %s, in progress %v, %s\n", r.Name, r.Spec.From, r.Status.Phase, r.Status.InProgress, r.Status.StoppedBy)
	}
	return out.String()
}
