package costs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/fleet"
)

// imageBytes is the size of the image: the servers are hollow, because what a disk takes costs no request.
const imageBytes = 20 << 20

// intervals are rarer than by default, so that what a Machine costs depends little on how fast the servers are: none of its hosts is looked at because it is time.
var intervals = settings.Intervals{Working: metav1.Duration{Duration: 10 * time.Second}, Steady: metav1.Duration{Duration: time.Hour}}

// selfTest is how long a server's self-test takes: longer than the manager needs to write that it is on. Without it both write at once, and how often one of
// them is refused depends on the machine.
const selfTest = 2 * time.Second

// limit is how long one step may take on a busy machine.
const limit = 10 * time.Minute

// classes are the NodeTypes of all samples with the servers that they select.
var classes = []fleet.Class{
	{NodeType: "h100", Profile: "hgx-h100"}, {NodeType: "h100-mig", Profile: "hgx-h100", Use: "mig"}, {NodeType: "h200-dra", Profile: "hgx-h200"},
	{NodeType: "a100", Profile: "hgx-a100-40gb"}, {NodeType: "a100-mig", Profile: "hgx-a100-40gb", Use: "mig"},
}

// rolled is how many of the first classes are rolled: those whose Machines no tenants share. The others are moved one after the other, which takes long, and each
// of them costs the same.
const rolled = 3

// clusters are the TenantClusters of all samples.
var clusters = []fleet.Tenant{{Name: "research", Namespace: "research"}, {Name: "inference", Namespace: "inference"}, fleet.SharedTenant}

// life is one fleet that is driven through its life.
type life struct {
	*fleet.Fleet
	spans []span
	// began and bmcRequests are the time and the requests to the BMCs at the beginning of the step.
	began       time.Time
	bmcRequests fleet.BMCRequests
	ledger      Ledger
	// usage is what the manager has used in all.
	usage fleet.Usage
}

// measureLife drives so many servers through a life, and returns what it cost.
func measureLife(ctx context.Context, dir, provider string, servers int, progress io.Writer) (l *life, err error) {
	l = &life{ledger: Ledger{}, Fleet: fleet.New(fleet.Options{
		Dir: dir, Provider: provider, Servers: servers, Classes: classes, Tenants: clusters, Sharing: true, ImageBytes: imageBytes, Timeout: limit, Intervals: intervals, SelfTest: selfTest, Progress: progress,
	})}
	l.Env.ProgramDir = "../../bin"
	defer func() { err = errors.Join(err, l.Stop(), l.Env.RemoveAllButLogs()) }()
	if err := l.Perform(ctx, []fleet.Step{
		{What: "setting up", Do: l.setUp},
		{What: "registering", Do: l.step(Register, func(ctx context.Context) error { return l.AwaitHosts(ctx, metal3.StateAvailable) })},
		{What: "provisioning", Do: l.step(Provision, l.provision)},
		{What: "measuring the objects", Do: l.measureObjects},
		{What: "rolling", Do: l.step(Roll, l.roll)},
		{What: "releasing", Do: l.step(Release, l.release)},
	}); err != nil {
		return l, err
	}
	return l, l.count()
}

func (l *life) setUp(ctx context.Context) error {
	if err := l.SetUp(ctx); err != nil {
		return err
	}
	for _, name := range []string{"legal-ai", "research-ai"} { // of the Entitlements
		if err := l.Env.Tenants[len(clusters)-1].Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	l.began = time.Now()
	return l.StartManager(ctx)
}

// step returns a function that does the step, waits until the manager writes nothing more, and notes the time and the requests to the BMCs.
func (l *life) step(step Step, do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		took := time.Since(l.began)
		if err := l.awaitQuiet(ctx); err != nil {
			return err
		}
		now := time.Now()
		l.spans = append(l.spans, span{step: step, from: l.began, to: now})
		l.began = now
		l.Log("%s took %.1f s", step, took.Seconds())
		return l.countBMCs(step)
	}
}

// quiet is how long the manager must not write before a step has ended.
const quiet = 3 * time.Second

// awaitQuiet waits until the manager has written nothing for a while. Its last writes follow what the step waited for: counts and events.
func (l *life) awaitQuiet(ctx context.Context) error {
	last, lastChange := -1, time.Now()
	return fleet.WaitFor(ctx, limit, "the manager writes nothing more", func() (bool, error) {
		n := 0
		for _, log := range l.logs() {
			err := environment.ReadRequests(log.path, log.user, func(r environment.Request) {
				if r.IsMutating() && r.Resource != "leases" {
					n++
				}
			})
			if err != nil {
				return false, err
			}
		}
		if n != last {
			last, lastChange = n, time.Now()
		}
		return time.Since(lastChange) >= quiet, fleet.Pause(ctx, quiet/6)
	})
}

// auditLog is an audit log with the user as which the manager is in it.
type auditLog struct{ where, path, user string }

func (l *life) logs() []auditLog {
	out := []auditLog{{management, l.Env.AuditLog(management), l.Env.ManagerUser()}}
	for _, t := range clusters {
		out = append(out, auditLog{tenants, l.Env.AuditLog(t.Name), fleet.TenantUser})
	}
	return out
}

func (l *life) provision(ctx context.Context) error {
	if err := l.Order(ctx); err != nil {
		return err
	}
	return l.AwaitMachines(ctx)
}

// roll changes the NodeTypes that are rolled, and waits until their Rollouts are done.
func (l *life) roll(ctx context.Context) error {
	// The pool's own budget would make the roll of a large fleet longer, and what is wanted is what one Machine costs.
	var pools v1alpha1.NodePoolList
	if err := l.Env.ManagementClient.List(ctx, &pools); err != nil {
		return err
	}
	for i := range pools.Items {
		if err := l.Env.ManagementClient.Patch(ctx, &pools.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rollout":{"maxUnavailable":"100%"}}}`))); err != nil {
			return err
		}
	}
	for _, c := range classes[:rolled] {
		n := &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: c.NodeType}}
		patch := `{"spec":{"userData":"#cloud-config\npackages: [lldpd, jq]\n","rollout":{"maxUnavailable":"100%","canary":{"machines":1,"bake":"1s"}}}}`
		if err := l.Env.ManagementClient.Patch(ctx, n, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return err
		}
	}
	return fleet.WaitFor(ctx, limit, "every Rollout is done", func() (bool, error) {
		var list v1alpha1.RolloutList
		if err := l.Env.ManagementClient.List(ctx, &list); err != nil {
			return false, err
		}
		done := 0
		for _, r := range list.Items {
			if r.Status.Phase == v1alpha1.RolloutStopped {
				return false, fmt.Errorf("the Rollout %s is stopped: %+v", r.Name, r.Status)
			}
			if r.Status.Phase == v1alpha1.RolloutDone {
				done++
			}
		}
		return done == rolled, fleet.Pause(ctx, 200*time.Millisecond)
	})
}

// release deletes every Machine, and waits until their hosts can be claimed again.
func (l *life) release(ctx context.Context) error {
	none := map[string]int{}
	for _, c := range classes {
		none[c.NodeType] = 0
	}
	if err := l.Scale(ctx, none); err != nil {
		return err
	}
	return l.AwaitHosts(ctx, metal3.StateAvailable)
}

// countBMCs adds the requests to the BMCs since the step before. Those of a baremetal-operator are none of Ingot's.
func (l *life) countBMCs(step Step) error {
	if l.Options.Provider == fleet.Metal3 {
		return nil
	}
	counts, err := l.Rack.ReadCounts()
	if err != nil {
		return err
	}
	var all fleet.BMCRequests
	for _, one := range counts {
		all.Reads += one.Reads
		all.Writes += one.Writes
		all.Handshakes += one.Handshakes
	}
	before := l.bmcRequests
	l.bmcRequests = all
	for what, n := range map[string]int64{"reads": all.Reads - before.Reads, "writes": all.Writes - before.Writes, "TLS handshakes": all.Handshakes - before.Handshakes} {
		l.ledger[Row{l.Options.Provider, step, bmcs, what}] = int(n)
	}
	return nil
}

// count adds the requests of the audit logs, and notes what the manager has used.
func (l *life) count() error {
	for _, log := range l.logs() {
		var requests []environment.Request
		if err := environment.ReadRequests(log.path, log.user, func(r environment.Request) { requests = append(requests, r) }); err != nil {
			return err
		}
		l.ledger.addRequests(l.Options.Provider, log.where, l.spans, requests)
	}
	children, err := fleet.ChildProcesses(os.DirFS("/proc"), os.Getpid())
	if err != nil {
		return err
	}
	for pid, line := range children {
		if filepath.Base(firstWord(line)) == fleet.ManagerProgram {
			l.usage, err = fleet.ReadUsage(os.DirFS("/proc"), pid)
		}
	}
	return err
}

// firstWord returns the program of a command line.
func firstWord(line string) string {
	word, _, _ := strings.Cut(line, " ")
	return word
}
