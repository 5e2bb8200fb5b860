package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/display"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/invariants"
	"github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/metal3rack"
)

// demo is one run of the demo.
type demo struct {
	// rollout is the name of the Rollout that an outage holds up.
	rollout string
	options Options
	env     *environment.Environment
	screen  *display.Screen
	// fleet is what the samples ask for.
	fleet fleetSpec
	// watchers record violations of the invariants, one for each tenant.
	watchers   []*invariants.Watcher
	assertions []display.Assertion
	// durations are those of Machines, those that are gone included, by name.
	durations map[string]display.MachineDurations
	// observed is the latest observation.
	observed observation.Observation
	// writes counts the manager's writes until the first Machines were admitted.
	writes environment.Writes
	// metal3 serves the hosts where the provider is metal3; otherwise nil.
	metal3 *metal3rack.Site
	// ironic is the running Ironic where the provider is ironic; otherwise nil.
	ironic *ironic.Process
	// closers end what the provider has started, the last one first.
	closers []func() error
	// images are the names of the OSImages: the samples' own, its successor, and one whose driver is not the one it names.
	images [3]string
	// metricsURL is where the manager serves its metrics; empty: nowhere.
	metricsURL string
}

// ErrBroken is returned when an assertion of the demo failed.
var ErrBroken = errors.New("the demo broke a promise; see FAIL above")

// Run runs the demo. The options must be valid. It returns ErrBroken when an assertion failed, and another error when the demo itself could
// not go on.
func Run(ctx context.Context, o Options) (err error) {
	if missing := providers[cmp.Or(o.Provider, DefaultProvider)].missing; missing != nil {
		if err := missing(); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "ingot-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	d := &demo{
		options: o, env: &environment.Environment{Dir: dir}, screen: display.NewScreen(o.Out, o.Plain), durations: map[string]display.MachineDurations{},
	}
	defer func() {
		d.screen.Close()
		for _, closer := range slices.Backward(d.closers) {
			err = errors.Join(err, closer())
		}
		err = errors.Join(err, d.env.Stop())
		if err == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(dir))
			return
		}
		err = errors.Join(err, d.env.RemoveAllButLogs())
		fmt.Fprintf(o.Out, "\nlogs and audit logs of this run: %s\n", dir)
	}()
	if err := d.runSteps(ctx); err != nil {
		return err
	}
	return d.printSummary(ctx)
}

// runSteps runs the steps in order. A failed assertion ends them early, because the steps after it would fail for the same reason.
func (d *demo) runSteps(ctx context.Context) error {
	for _, step := range d.options.story().steps {
		if err := step(d, ctx); err != nil {
			return err
		}
		if d.hasFailedAssertion() {
			break
		}
	}
	return d.checkInvariants(ctx)
}

// printSummary prints the summary and, with --keep, waits for Ctrl-C.
func (d *demo) printSummary(ctx context.Context) error {
	d.screen.Close()
	now := time.Now()
	for _, m := range d.observed.Machines {
		d.durations[m.Name] = observation.PhaseDurations(m, now)
	}
	fmt.Fprintf(d.options.Out, "\n%d servers in %.0f s\n\n%s", d.options.servers(), d.screen.Elapsed().Seconds(), display.Summary(slices.Collect(maps.Values(d.durations)), d.apiCosts(), d.assertions))
	if d.options.Keep {
		if err := d.printKubeconfigs(); err != nil {
			return err
		}
		<-ctx.Done()
	}
	if d.hasFailedAssertion() {
		return ErrBroken
	}
	return nil
}

func (d *demo) hasFailedAssertion() bool {
	for _, a := range d.assertions {
		if !a.Passed {
			return true
		}
	}
	return false
}

// assert records the result of an assertion. The detail is shown when it failed.
func (d *demo) assert(passed bool, detail, format string, args ...any) {
	a := display.Assertion{Text: fmt.Sprintf(format, args...), Passed: passed, Detail: detail}
	d.assertions = append(d.assertions, a)
	if passed {
		d.screen.Note("ok: %s", a.Text)
	} else {
		d.screen.Note("FAIL: %s", a.Text)
	}
}

// unless returns the detail of an assertion that has nothing to show when it passed.
func unless(passed bool, detail string) string {
	if passed {
		return ""
	}
	return detail
}

// pollInterval is the time between two observations.
const pollInterval = 200 * time.Millisecond

// waitUntil observes the fleet until done returns true or the step's time-out has passed. The time-out is no error, because the
// assertion after the step then fails. It returns an error when the manager has ended or an API server does not answer.
func (d *demo) waitUntil(ctx context.Context, done func(observation.Observation) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		ok, err := d.observe(ctx, done)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil
			}
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// observe makes an observation, shows it, and returns what done makes of it.
func (d *demo) observe(ctx context.Context, done func(observation.Observation) (bool, error)) (bool, error) {
	if d.env.Manager != nil {
		if exited, err := d.env.Manager.Exited(); exited {
			return false, err
		}
	}
	observed, err := observation.Observe(ctx, d.env.ManagementClient, time.Now())
	if err != nil {
		return false, err
	}
	d.record(observed)
	for _, w := range d.watchers {
		if err := w.Check(ctx); err != nil {
			return false, err
		}
	}
	d.screen.Update(observed.Rows(), observed.StateLines())
	return done(observed)
}

// record keeps the observation, and the durations of the Machines that are gone since the one before it.
func (d *demo) record(observed observation.Observation) {
	now := time.Now()
	for _, m := range d.observed.Machines {
		if observed.Machine(m.Name) == nil {
			d.durations[m.Name] = observation.PhaseDurations(m, now)
		}
	}
	d.observed = observed
}

// pinnedMachine is the Machine that the demo pins to the first server and releases at the end.
const pinnedMachine = "workbench"

// checkInvariants asserts that no invariant was violated during the run and that no secret was leaked.
func (d *demo) checkInvariants(ctx context.Context) error {
	if len(d.watchers) == 0 {
		return nil
	}
	invariants.WaitForEvents(ctx, time.Second)
	var violations []string
	for _, w := range d.watchers {
		found, err := w.Violations()
		if err != nil {
			return err
		}
		violations = append(violations, found...)
	}
	d.assert(len(violations) == 0, joinLines(violations), "one Machine per host, no pod through a gate, no host installed over unerased disks")
	if check := d.provider().check; check != nil {
		if err := check(d); err != nil {
			return err
		}
	}
	return d.checkSecrets(ctx)
}

// checkSecrets asserts that no secret is in the manager's log, or in an event or a status.
func (d *demo) checkSecrets(ctx context.Context) error {
	logs := map[string][]byte{}
	if d.env.Manager != nil {
		text, err := os.ReadFile(d.env.Manager.Log)
		if err != nil {
			return fmt.Errorf("read the manager's log: %w", err)
		}
		logs["the manager's log"] = text
	}
	leaks, err := invariants.Leaks(ctx, d.env.ManagementClient, d.env.Secrets, logs)
	if err != nil {
		return err
	}
	d.assert(len(leaks) == 0, joinLines(leaks), "no password or token in a log, an event or a status")
	return nil
}

func joinLines(all []string) string { return strings.Join(all, "\n") }

// isGated reports whether the gate taint is on the Machine's node.
func isGated(m *v1alpha1.Machine) bool {
	return m != nil && m.Status.Phase == v1alpha1.MachineValidating
}

// machineResources are the resources that the manager writes for every Machine.
var machineResources = []string{"machines", "baremetalhosts", "hostrecords", "secrets"}

// apiCosts returns the manager's writes per Machine, from the inspection of a powered-off server to the admitted node.
func (d *demo) apiCosts() []display.Cost {
	if len(d.writes) == 0 {
		return nil
	}
	n := float64(d.options.servers())
	writes := 0
	var parts []string
	for _, resource := range slices.Sorted(maps.Keys(d.writes)) {
		if slices.Contains(machineResources, resource) {
			writes += d.writes[resource]
			parts = append(parts, fmt.Sprintf("%s %.1f", resource, float64(d.writes[resource])/n))
		}
	}
	return []display.Cost{
		{What: "API writes", PerMachine: float64(writes) / n, Detail: strings.Join(parts, ", ")},
		{What: "Events", PerMachine: float64(d.writes["events"]) / n},
	}
}
