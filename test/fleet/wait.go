package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// AwaitHosts waits until every host has the state, and, where that is available, belongs to no Machine.
func (f *Fleet) AwaitHosts(ctx context.Context, state metal3.ProvisioningState) error {
	return f.AwaitAll(ctx, 2*time.Second, func() (int, error) {
		var list metal3.BareMetalHostList
		if err := f.Env.ManagementClient.List(ctx, &list); err != nil {
			return 0, err
		}
		count := 0
		for _, h := range list.Items {
			if h.Status.Provisioning.State == state && (h.Spec.ConsumerRef == nil || state != metal3.StateAvailable) {
				count++
			}
		}
		return count, nil
	}, fmt.Sprintf("hosts are %s", state))
}

// Order sets the replicas of the pools so that there is a Machine for each server.
func (f *Fleet) Order(ctx context.Context) error {
	share := map[string]int{}
	for i := range f.Options.Servers {
		share[f.classOf(i).NodeType]++
	}
	f.Log("ordering %v", share)
	return f.Scale(ctx, share)
}

// Scale sets the replicas of the pools, by their NodeTypes. Those of other NodeTypes stay as they are.
func (f *Fleet) Scale(ctx context.Context, replicas map[string]int) error {
	var pools v1alpha1.NodePoolList
	if err := f.Env.ManagementClient.List(ctx, &pools); err != nil {
		return err
	}
	for i := range pools.Items {
		pool := &pools.Items[i]
		n, isNamed := replicas[pool.Spec.NodeTypeRef.Name]
		if !isNamed {
			continue
		}
		patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, n)
		if err := f.Env.ManagementClient.Patch(ctx, pool, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return err
		}
	}
	return nil
}

// AwaitMachines waits until all Machines are Ready. It reads the pools only: listing a thousand Machines repeatedly would
// itself cost time that is measured.
func (f *Fleet) AwaitMachines(ctx context.Context) error {
	err := f.AwaitAll(ctx, 200*time.Millisecond, func() (int, error) {
		var pools v1alpha1.NodePoolList
		if err := f.Env.ManagementClient.List(ctx, &pools); err != nil {
			return 0, err
		}
		ready := 0
		for _, p := range pools.Items {
			ready += int(p.Status.ReadyReplicas)
		}
		return ready, nil
	}, "Machines are Ready")
	if err == nil || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, f.NotReadyError(ctx))
}

// NotReadyError returns an error with the reasons of Machines that are not Ready.
func (f *Fleet) NotReadyError(ctx context.Context) error {
	var list v1alpha1.MachineList
	if err := f.Env.ManagementClient.List(ctx, &list); err != nil {
		return err
	}
	var errs []error
	for _, m := range list.Items {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil {
			errs = append(errs, fmt.Errorf("%s: no condition Ready yet", m.Name))
		} else if c.Status != "True" {
			errs = append(errs, fmt.Errorf("%s: %s: %s: %s", m.Name, m.Status.Phase, c.Reason, c.Message))
		}
	}
	return errors.Join(errs[:min(len(errs), 20)]...)
}

// AwaitAll waits until the count reaches the number of servers, and logs the progress.
func (f *Fleet) AwaitAll(ctx context.Context, interval time.Duration, count func() (int, error), what string) error {
	lastProgress := time.Now()
	last := 0
	return WaitFor(ctx, f.Options.Timeout, fmt.Sprintf("all %d %s", f.Options.Servers, what), func() (bool, error) {
		if ended, err := f.Env.Manager.Exited(); ended {
			return false, err
		}
		var err error
		if last, err = count(); err != nil {
			return false, err
		}
		if time.Since(lastProgress) > 10*time.Second {
			lastProgress = time.Now()
			f.Log("%d of %d %s", last, f.Options.Servers, what)
		}
		if last < f.Options.Servers {
			return false, Pause(ctx, interval)
		}
		return true, nil
	})
}

// WaitFor polls until the condition is true, an error occurs or the limit is over.
func WaitFor(ctx context.Context, limit time.Duration, what string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %s: %s", limit, what))
	defer cancel()
	for {
		done, err := is()
		if done || err != nil {
			return err
		}
		if err := Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// Pause waits for the time, and returns the cause when the context ends before.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
