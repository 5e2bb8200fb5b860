package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/fleet"
)

// Names of the processes that are measured.
const manager, management, tenant, rackName, benchmark = "manager", "management cluster", "tenant's cluster", "rack and image server", "this program"

// processes are these names in the order of the report.
var processes = []string{manager, management, tenant, rackName, benchmark}

// sample is what the processes have used at a point of the run.
type sample struct {
	at    time.Time
	usage map[string]fleet.Usage
}

// fleetRun is one run of the benchmark with a fleet.
type fleetRun struct {
	*fleet.Fleet
	options options
	pids    map[string]int
	// started is the sample before the manager starts, registered the one when every host is available, ordered the one before
	// the first Machine is created, admitted the one when the last Machine is Ready.
	started, registered, ordered, admitted sample
	steady                                 *steadyState
	machines                               []v1alpha1.Machine
}

// classes are the NodeTypes of config/samples with the servers that they select.
var classes = []fleet.Class{{NodeType: "h100", Profile: "hgx-h100"}, {NodeType: "h100-mig", Profile: "hgx-h100", Use: "mig"}, {NodeType: "h200-dra", Profile: "hgx-h200"}}

// imageBytes is the size of the image.
const imageBytes = 64 << 20

func newFleetRun(o options, dir string, progress io.Writer) *fleetRun {
	return &fleetRun{options: o, Fleet: fleet.New(fleet.Options{
		Dir: dir, Provider: o.provider, Servers: o.machines, Classes: classes, Tenants: []fleet.Tenant{research}, ImageBytes: imageBytes,
		Timeout: o.timeout, TenantQPS: o.tenantQPS, Profile: o.profile, Progress: progress,
	})}
}

// research is the tenant of the samples that has all Machines.
var research = fleet.Tenant{Name: tenantName, Namespace: tenantName}

// tenantName is its name.
const tenantName = "research"

// run performs the steps that are measured.
func (f *fleetRun) run(ctx context.Context) error {
	if err := f.SetUp(ctx); err != nil {
		return err
	}
	var err error
	if err := f.StartManager(ctx); err != nil {
		return err
	}
	if f.pids, err = waitForProcesses(ctx, f.findProcesses); err != nil {
		return err
	}
	if f.started, err = f.takeSample(); err != nil {
		return err
	}
	f.Log("the manager registers and inspects the hosts")
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
func (f *fleetRun) admitMachines(ctx context.Context) error {
	var err error
	if f.ordered, err = f.takeSample(); err != nil {
		return err
	}
	if err := f.Order(ctx); err != nil {
		return err
	}
	if err := f.AwaitMachines(ctx); err != nil {
		return err
	}
	if f.admitted, err = f.takeSample(); err != nil {
		return err
	}
	f.Log("all Ready after %s", f.admitted.at.Sub(f.ordered.at).Round(100*time.Millisecond))
	var list v1alpha1.MachineList
	if err := f.Env.ManagementClient.List(ctx, &list); err != nil {
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
func (f *fleetRun) findProcesses() (map[string]int, error) {
	out, err := findChildren(map[string]string{manager: managerSign, management: managementSign, tenant: tenantSign})
	if err == nil {
		out[rackName] = f.Rack.PID()
	}
	return out, err
}

// Signs by which the command lines of processes are recognized.
const managerSign, managementSign, tenantSign = fleet.ManagerProgram + " --config", "/management ", "/" + tenantName + " "

// findChildren returns the PIDs of this process and of its children with the signs, by their names.
func findChildren(signs map[string]string) (map[string]int, error) {
	all, err := fleet.ChildProcesses(os.DirFS("/proc"), os.Getpid())
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

func (f *fleetRun) takeSample() (sample, error) {
	m := sample{at: time.Now(), usage: map[string]fleet.Usage{}}
	for name, pid := range f.pids {
		u, err := fleet.ReadUsage(os.DirFS("/proc"), pid)
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		m.usage[name] = u
	}
	return m, nil
}

// awaitHosts waits until every host is available.
func (f *fleetRun) awaitHosts(ctx context.Context) error {
	err := f.AwaitHosts(ctx, metal3.StateAvailable)
	if err != nil {
		return err
	}
	f.registered, err = f.takeSample()
	return err
}
