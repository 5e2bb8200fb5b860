package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/test/environment"
)

// Names of the processes that are measured.
const manager, management, tenant, rackName, benchmark = "manager", "management cluster", "tenant's cluster", "rack and image server", "this program"

// processes are these names in the order of the report.
var processes = []string{manager, management, tenant, rackName, benchmark}

// sample is what the processes have used at a point of the run.
type sample struct {
	at    time.Time
	usage map[string]usage
}

// fleet is one run of the benchmark.
type fleet struct {
	options  options
	progress io.Writer
	env      *environment.Environment
	rack     *rackProcess
	image    pack.Result
	pids     map[string]int
	// started is the sample before the manager starts, registered the one when every host is available, ordered the one before
	// the first Machine is created, admitted the one when the last Machine is Ready.
	started, registered, ordered, admitted sample
	steady                                 *steadyState
	machines                               []v1alpha1.Machine
}

func newFleet(o options, dir string, progress io.Writer) *fleet {
	return &fleet{options: o, progress: progress, env: &environment.Environment{Dir: dir}}
}

// stop stops the processes, each before those that it depends on. Processes that did not start are left out.
func (f *fleet) stop() error {
	return errors.Join(f.env.Manager.Stop(), f.rack.stop(), f.env.Stop())
}

// run performs the steps that are measured.
func (f *fleet) run(ctx context.Context) error {
	if err := f.setUp(ctx); err != nil {
		return err
	}
	var err error
	if err := f.startManager(ctx); err != nil {
		return err
	}
	if f.pids, err = waitForProcesses(ctx, f.findProcesses); err != nil {
		return err
	}
	if f.started, err = f.takeSample(); err != nil {
		return err
	}
	logProgress(f.progress, "the manager registers and inspects the hosts")
	if err := f.awaitHosts(ctx); err != nil {
		return err
	}
	if err := f.admitMachines(ctx); err != nil {
		return err
	}
	if f.options.steady == 0 {
		return nil
	}
	return f.measureSteadyState(ctx)
}

// admitMachines orders every Machine and waits until all are Ready.
func (f *fleet) admitMachines(ctx context.Context) error {
	var err error
	if f.ordered, err = f.takeSample(); err != nil {
		return err
	}
	if err := f.orderMachines(ctx); err != nil {
		return err
	}
	if err := f.awaitMachines(ctx); err != nil {
		return err
	}
	if f.admitted, err = f.takeSample(); err != nil {
		return err
	}
	logProgress(f.progress, "all Ready after %s", f.admitted.at.Sub(f.ordered.at).Round(100*time.Millisecond))
	var list v1alpha1.MachineList
	if err := f.env.ManagementClient.List(ctx, &list); err != nil {
		return err
	}
	f.machines = list.Items
	if f.options.profile {
		return syscall.Kill(f.pids[manager], syscall.SIGUSR1) // the next profile is of the steady state
	}
	return nil
}

// startLimit is the time that a started process may take to show its command line.
const startLimit = 10 * time.Second

// waitForProcesses finds the processes, and tries again while one of them has not got its command line yet.
func waitForProcesses(ctx context.Context, find func() (map[string]int, error)) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		found, err := find()
		if err == nil {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// findProcesses returns the PIDs of the processes, which it recognizes by their command lines.
func (f *fleet) findProcesses() (map[string]int, error) {
	out, err := findChildren(map[string]string{manager: managerSign, management: managementSign, tenant: tenantSign})
	if err == nil {
		out[rackName] = f.rack.cmd.Process.Pid
	}
	return out, err
}

// Signs by which the command lines of processes are recognized.
const managerSign, managementSign, tenantSign = managerProgram + " --config", "/management ", "/" + tenantName + " "

// findChildren returns the PIDs of this process and of its children with the signs, by their names.
func findChildren(signs map[string]string) (map[string]int, error) {
	all, err := childProcesses(os.DirFS("/proc"), os.Getpid())
	if err != nil {
		return nil, err
	}
	out := map[string]int{benchmark: os.Getpid()}
	for name, sign := range signs {
		for pid, line := range all {
			if strings.Contains(line, sign) {
				out[name] = pid
			}
		}
		if out[name] == 0 {
			return nil, fmt.Errorf("find the process of the %s: none of %q has %q", name, slices.Collect(maps.Values(all)), sign)
		}
	}
	return out, nil
}

func (f *fleet) takeSample() (sample, error) {
	m := sample{at: time.Now(), usage: map[string]usage{}}
	for name, pid := range f.pids {
		u, err := readUsage(os.DirFS("/proc"), pid)
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		m.usage[name] = u
	}
	return m, nil
}

// awaitHosts waits until every host is available.
func (f *fleet) awaitHosts(ctx context.Context) error {
	err := f.waitForAll(ctx, 2*time.Second, func() (int, error) {
		var list metal3.BareMetalHostList
		if err := f.env.ManagementClient.List(ctx, &list); err != nil {
			return 0, err
		}
		available := 0
		for _, h := range list.Items {
			if h.Status.Provisioning.State == metal3.StateAvailable {
				available++
			}
		}
		return available, nil
	}, "hosts are available")
	if err != nil {
		return err
	}
	f.registered, err = f.takeSample()
	return err
}

// orderMachines sets the replicas of the pools so that there is a Machine for each host.
func (f *fleet) orderMachines(ctx context.Context) error {
	var pools v1alpha1.NodePoolList
	if err := f.env.ManagementClient.List(ctx, &pools); err != nil {
		return err
	}
	share := map[string]int{"h100": (f.options.machines + 2) / 3, "h100-mig": (f.options.machines + 1) / 3, "h200-dra": f.options.machines / 3}
	for i := range pools.Items {
		pool := &pools.Items[i]
		patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, share[pool.Spec.NodeTypeRef.Name])
		if err := f.env.ManagementClient.Patch(ctx, pool, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return err
		}
	}
	logProgress(f.progress, "ordered %v", share)
	return nil
}

// awaitMachines waits until all Machines are Ready. It reads the pools only: listing a thousand Machines repeatedly would
// itself cost time that is measured.
func (f *fleet) awaitMachines(ctx context.Context) error {
	err := f.waitForAll(ctx, 200*time.Millisecond, func() (int, error) {
		var pools v1alpha1.NodePoolList
		if err := f.env.ManagementClient.List(ctx, &pools); err != nil {
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
	return errors.Join(err, f.notReadyError(ctx))
}

// notReadyError returns an error with the reasons of Machines that are not Ready.
func (f *fleet) notReadyError(ctx context.Context) error {
	var list v1alpha1.MachineList
	if err := f.env.ManagementClient.List(ctx, &list); err != nil {
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

// waitForAll waits until the count reaches the number of Machines, and logs the progress.
func (f *fleet) waitForAll(ctx context.Context, interval time.Duration, count func() (int, error), what string) error {
	lastProgress := time.Now()
	last := 0
	return waitFor(ctx, f.options.timeout, fmt.Sprintf("all %d %s", f.options.machines, what), func() (bool, error) {
		if ended, err := f.env.Manager.Exited(); ended {
			return false, err
		}
		var err error
		if last, err = count(); err != nil {
			return false, err
		}
		if time.Since(lastProgress) > 10*time.Second {
			lastProgress = time.Now()
			logProgress(f.progress, "%d of %d %s", last, f.options.machines, what)
		}
		if last < f.options.machines {
			return false, pause(ctx, interval)
		}
		return true, nil
	})
}

// waitFor polls until the condition is true, an error occurs or the limit is over.
func waitFor(ctx context.Context, limit time.Duration, what string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %s: %s", limit, what))
	defer cancel()
	for {
		done, err := is()
		if done || err != nil {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
