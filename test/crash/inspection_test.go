package crash

import (
	"context"
	"errors"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// runInspection asks for another look at a free host, by its BMC and then by the agent, and waits until the host is available and off again.
func (s *testbed) runInspection(ctx context.Context, _ string) error {
	var hosts metal3.BareMetalHostList
	if err := s.env.ManagementClient.List(ctx, &hosts, client.MatchingLabels{storyLabel: "life"}); err != nil || len(hosts.Items) == 0 {
		return errors.Join(err, errors.New("no host to inspect"))
	}
	host, before := &hosts.Items[0], &v1alpha1.HostRecord{}
	key := client.ObjectKeyFromObject(host)
	if err := s.env.ManagementClient.Get(ctx, key, before); err != nil {
		return err
	}
	asked := host.DeepCopy()
	asked.Annotations = map[string]string{metal3.InspectAnnotationPrefix: ""}
	for k, v := range host.Annotations {
		asked.Annotations[k] = v
	}
	if err := s.env.ManagementClient.Patch(ctx, asked, client.MergeFrom(host)); err != nil {
		return err
	}
	after := &v1alpha1.HostRecord{}
	err := until(ctx, waitTimeout, "the agent has looked at host "+host.Name, func() (bool, error) {
		if err := errors.Join(s.manager.health(), s.watch.Check(ctx), s.env.ManagementClient.Get(ctx, key, after)); err != nil {
			return false, err
		}
		w := after.Status.Wanted
		return w.IsAgentInspection() && !w.IsOpen() && w.Number > before.Status.Wanted.Number, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %+v, kept of it: %+v", err, after.Status.Wanted, after.Status.Attempt)
	}
	if w, last := after.Status.Wanted, before.Status.Wanted.Number; w.Outcome != v1alpha1.AttemptSucceeded || w.Number != last+2 {
		return fmt.Errorf("after attempt %d the look is %+v, want attempt %d to succeed: one by the BMC, one by the agent", last, w, last+2)
	}
	if installs := s.ledger.count(); len(installs) > 0 {
		return fmt.Errorf("agents began to write, by server: %v", installs)
	}
	return s.awaitHostsAvailable(ctx, "life")
}
