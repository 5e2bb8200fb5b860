package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/display"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/invariants"
)

// story is one run of the demo.
type story struct {
	o Options
	w *environment.World
	s *screen
	// watchers look for broken invariants, one in each tenant.
	watchers []*invariants.Watcher
	promises []display.Promise
	lives    map[string]display.Life
	last     observation.Snapshot
	site     Site
	// cost is what the manager wrote until the first fleet was admitted.
	cost environment.Writes
	// images are the OSImages of this run: the samples' own, its successor, and one that is not what it says.
	images [3]string
}

// ErrBroken is returned when something that the demo promised did not happen.
var ErrBroken = errors.New("the demo broke a promise; see FAIL above")

// Run tells the whole story with valid options. It returns ErrBroken when a promise was not kept, and another error when the demo itself could not go on.
func Run(ctx context.Context, o Options) (err error) {
	dir, err := os.MkdirTemp("", "ingot-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	t := &story{o: o, w: &environment.World{Dir: dir}, s: newScreen(o.Out, o.Plain), lives: map[string]display.Life{}}
	defer func() {
		t.s.close()
		err = errors.Join(err, t.w.Stop())
		if err == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(dir))
			return
		}
		err = errors.Join(err, t.w.KeepLogs())
		fmt.Fprintf(o.Out, "\nlogs and audit logs of this run: %s\n", dir)
	}()
	if err := t.tell(ctx); err != nil {
		return err
	}
	return t.end(ctx)
}

// tell runs the steps of the story in order. A broken promise ends it early: what follows would only repeat it.
func (t *story) tell(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		t.prepare, t.populate, t.enroll, t.refuse, t.order, t.admit, t.proveGate, t.keepOut, t.repair, t.roll, t.stopBadImage, t.undo, t.release,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if t.failed() {
			break
		}
	}
	return t.judge(ctx)
}

// end prints the summary and, with --keep, waits for Ctrl-C.
func (t *story) end(ctx context.Context) error {
	t.s.close()
	now := time.Now()
	for _, m := range t.last.Machines {
		t.lives[m.Name] = observation.Life(m, now)
	}
	var lives []display.Life
	for _, l := range t.lives {
		lives = append(lives, l)
	}
	fmt.Fprintf(t.o.Out, "\n%d servers in %.0f s\n\n%s", t.o.Servers, t.s.elapsed().Seconds(), display.Summary(lives, t.costs(), t.promises))
	if t.o.Keep {
		fmt.Fprintf(t.o.Out, "\neverything keeps running until Ctrl-C:\n\n  # Ingot: ingot machines; ingot rollout status; kubectl get bmh -A\n  export KUBECONFIG=%s\n", t.w.Management.KubeconfigPath())
		for _, tenant := range t.w.Tenants {
			fmt.Fprintf(t.o.Out, "  # tenant %s: kubectl get nodes,resourceslices\n  export KUBECONFIG=%s\n", tenant.Name, tenant.Cluster.KubeconfigPath())
		}
		<-ctx.Done()
	}
	if t.failed() {
		return ErrBroken
	}
	return nil
}

func (t *story) failed() bool {
	for _, p := range t.promises {
		if !p.Kept {
			return true
		}
	}
	return false
}

// promise records whether something that was promised happened.
func (t *story) promise(kept bool, detail, format string, args ...any) {
	p := display.Promise{Text: fmt.Sprintf(format, args...), Kept: kept, Detail: detail}
	t.promises = append(t.promises, p)
	if kept {
		t.s.note("ok: %s", p.Text)
	} else {
		t.s.note("FAIL: %s", p.Text)
	}
}

// pollInterval is how often the fleet is looked at.
const pollInterval = 200 * time.Millisecond

// until looks at the fleet until done says so or the step's time is up, which is no error: the promise that follows tells.
// It is one when a program of the demo ended, or an API server no longer answers.
func (t *story) until(ctx context.Context, done func(observation.Snapshot) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		ok, err := t.look(ctx, done)
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

func (t *story) look(ctx context.Context, done func(observation.Snapshot) (bool, error)) (bool, error) {
	if t.w.Manager != nil {
		if gone, err := t.w.Manager.Ended(); gone {
			return false, err
		}
	}
	snap, err := observation.Observe(ctx, t.w.Fleet)
	if err != nil {
		return false, err
	}
	t.remember(snap)
	for _, w := range t.watchers {
		if err := w.Look(ctx); err != nil {
			return false, err
		}
	}
	t.s.update(snap.Rows(), snap.Rolls())
	return done(snap)
}

// remember keeps the lives of Machines that are gone later.
func (t *story) remember(snap observation.Snapshot) {
	now := time.Now()
	for _, m := range t.last.Machines {
		if snap.Machine(m.Name) == nil {
			t.lives[m.Name] = observation.Life(m, now)
		}
	}
	t.last = snap
}

// pinned is the Machine that the demo pins to the first server and releases at the end.
const pinned = "workbench"

// judge looks for broken invariants and leaked secrets in all that happened.
func (t *story) judge(ctx context.Context) error {
	if len(t.watchers) == 0 {
		return nil
	}
	invariants.Settle(ctx, time.Second)
	var violations []string
	for _, w := range t.watchers {
		found, err := w.Violations()
		if err != nil {
			return err
		}
		violations = append(violations, found...)
	}
	t.promise(len(violations) == 0, lines(violations), "one Machine per host, no pod through a gate, no host installed over unerased disks")
	return t.judgeSecrets(ctx)
}

// judgeSecrets looks for leaked ones.
func (t *story) judgeSecrets(ctx context.Context) error {
	logs := map[string][]byte{}
	if t.w.Manager != nil {
		text, err := os.ReadFile(t.w.Manager.Log)
		if err != nil {
			return fmt.Errorf("read the manager's log: %w", err)
		}
		logs["the manager's log"] = text
	}
	leaks, err := invariants.Leaks(ctx, t.w.Fleet, t.w.Secrets, logs)
	if err != nil {
		return err
	}
	t.promise(len(leaks) == 0, lines(leaks), "no password or token in a log, an event or a status")
	return nil
}

func lines(all []string) string { return strings.Join(all, "\n") }

// gated says whether a Machine's node is behind its gate.
func gated(m *v1alpha1.Machine) bool {
	return m != nil && m.Status.Phase == v1alpha1.MachineValidating
}
