package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/operator"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/require"
)

const (
	// generationVariable makes of this test program an ingot-manager whose resolver is of that generation.
	generationVariable = "INGOT_TEST_GENERATION"
	// generationLabel is on every node, with the generation that it was rendered by, and expected with it.
	generationLabel = "version.example.com/generation"
)

func TestMain(m *testing.M) {
	if generation := os.Getenv(generationVariable); generation != "" {
		if err := runManager(generation, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runManager is ingot-manager with the resolver of a generation: its nodes have a label, and must have it.
func runManager(generation string, args []string) error {
	set := flag.NewFlagSet("ingot-manager", flag.ContinueOnError)
	config, kubeconfig, embedBoot := set.String("config", "", ""), set.String("kubeconfig", "", ""), set.Bool("embed-boot", false, "")
	if err := set.Parse(args); err != nil {
		return err
	}
	file, err := os.Open(*config)
	if err != nil {
		return err
	}
	defer file.Close()
	s, err := settings.Read(file)
	if err != nil {
		return err
	}
	cluster, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	return operator.Run(ctrl.SetupSignalHandler(), s, cluster, operator.Options{Version: "generation " + generation, EmbedBoot: *embedBoot, Resolve: func(r spec.Request) (v1alpha1.NodePlan, error) {
		plan, err := presentation.Resolve(r)
		if plan.NodeLabels == nil {
			plan.NodeLabels = map[string]string{}
		}
		plan.NodeLabels[generationLabel] = generation
		plan.Expectation.Labels = append(plan.Expectation.Labels, v1alpha1.ExpectedLabel{Check: "software/generation", Key: generationLabel, Value: generation})
		return plan, err
	}})
}

// generations is a folder of programs whose ingot-manager is of a generation that can be changed.
func generations(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ingot-agent", "ingot-controlplane"} {
		if err := os.Symlink(filepath.Join(programFolder(t), name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// install makes the folder's ingot-manager one of that generation.
func install(t *testing.T, dir, generation string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s \"$@\"\n", generationVariable, generation, program)
	path := filepath.Join(dir, "ingot-manager")
	if err := os.WriteFile(path+".new", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// generation of the node that a Machine has; empty: it has none.
func (v observation) generation() string {
	if v.node == nil {
		return ""
	}
	return v.node.Labels[generationLabel]
}

// TestANewVersionJudgesNobodyByAnotherPromise starts a manager with another resolver over an admitted fleet.
func TestANewVersionJudgesNobodyByAnotherPromise(t *testing.T) {
	require.Turn(t, 3)
	t.Parallel()
	profile, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"first", "second", "third"}
	var servers []rack.ServerSpec
	for _, name := range names {
		servers = append(servers, rack.ServerSpec{Name: name, Profile: profile})
	}
	programs := generations(t)
	install(t, programs, "1")
	p := startPipelineFrom(t, programs, servers)
	f := &refresh{pipeline: p, programs: programs, names: names}
	t.Run("a fleet is admitted", f.admit)
	t.Run("another version gates nobody", f.upgrade)
	t.Run("a lost Machine comes back with the stable rendering", f.loseOne)
	t.Run("the refresh rolls all", func(t *testing.T) { f.roll(t, "refresh", "2") })
	t.Run("its undo rolls back", func(t *testing.T) { f.roll(t, "undo", "1") })
	p.judge(t.Context(), t)
}

// refresh is a fleet that meets another version.
type refresh struct {
	*pipeline
	programs string
	names    []string
	stable   v1alpha1.RenderedRevision
}

func (f *refresh) nodeType(t *testing.T) *v1alpha1.NodeType {
	t.Helper()
	out := &v1alpha1.NodeType{}
	if err := f.env.ManagementClient.Get(t.Context(), client.ObjectKey{Name: nodeType}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (f *refresh) admit(t *testing.T) {
	after := f.nodeType(t)
	before := after.DeepCopy()
	two := intstr.FromInt32(2)
	after.Spec.Rollout = &v1alpha1.RolloutPolicy{MaxUnavailable: &two, Canary: &v1alpha1.CanarySpec{Machines: 1, Bake: &metav1.Duration{Duration: time.Second}}}
	if err := f.env.ManagementClient.Patch(t.Context(), after, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	for _, name := range f.names {
		if err := f.order(t.Context(), name, name); err != nil {
			t.Fatal(err)
		}
	}
	f.allReady(t, "1")
	f.stable = f.nodeType(t).Status.Stable()
}

// allReady waits until every Machine is Ready with a node of that generation.
func (f *refresh) allReady(t *testing.T, generation string) {
	t.Helper()
	for _, name := range f.names {
		_, err := f.fleet.await(t.Context(), waitTimeout, name, name, "Ready with generation "+generation, func(v observation) bool { return v.isReady() && v.generation() == generation })
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (f *refresh) upgrade(t *testing.T) {
	if err := f.env.Manager.Stop(); err != nil {
		t.Fatal(err)
	}
	f.fleet.forgetGates()
	install(t, f.programs, "2")
	if err := f.env.StartManager(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, takeoverLimit, "the NodeType says what differs", func() bool {
		c := meta.FindStatusCondition(f.nodeType(t).Status.Conditions, v1alpha1.ConditionRenderingCurrent)
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "nodeLabels."+generationLabel+" is 1 and would be 2")
	})
	// It judges: what is not as the first version promised holds the node, and it is admitted again by the same promise.
	name := f.names[0]
	f.label(t, name, "9")
	if _, err := f.fleet.await(t.Context(), waitTimeout, name, name, "held for its label", func(v observation) bool {
		return v.check("software/generation").Result == v1alpha1.CheckFail && v.check("software/generation").Expected == "1" && v.node != nil && isGated(v.node)
	}); err != nil {
		t.Fatal(err)
	}
	f.label(t, name, "1")
	f.allReady(t, "1")
	for _, other := range f.names[1:] {
		v, _, err := f.fleet.observe(other, other)
		if err != nil || v.node == nil || f.fleet.wasGated(v.node) {
			t.Errorf("%s was gated (%v): %s", other, err, v)
		}
	}
	if s := f.nodeType(t).Status; s.Stable() != f.stable || s.Target() != f.stable {
		t.Errorf("stable %v, target %v, it was %v", s.Stable(), s.Target(), f.stable)
	}
}

func (f *refresh) label(t *testing.T, node, generation string) {
	t.Helper()
	change := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, generationLabel, generation))
	if err := f.env.TenantClient.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, change); err != nil {
		t.Fatal(err)
	}
}

func (f *refresh) loseOne(t *testing.T) {
	name := f.names[2]
	if err := f.env.ManagementClient.Delete(t.Context(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: teamNamespace, Name: name}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.fleet.await(t.Context(), waitTimeout, name, name, "its host is back", func(v observation) bool { return v.isBack() && v.machine == nil }); err != nil {
		t.Fatal(err)
	}
	if err := f.order(t.Context(), name, name); err != nil {
		t.Fatal(err)
	}
	f.allReady(t, "1")
	v, _, err := f.fleet.observe(name, name)
	if err != nil || v.machine.Status.Installed() != f.stable {
		t.Errorf("it was installed with %v (%v), not with %v", v.machine.Status.Installed(), err, f.stable)
	}
}

// roll runs ingot rollout VERB and waits until every Machine has a node of that generation, and the Rollout is done.
func (f *refresh) roll(t *testing.T, verb, generation string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, f.env.Management.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said, err := exec.CommandContext(ctx, filepath.Join(programFolder(t), "ingot"), "rollout", verb, nodeType, "--kubeconfig", kubeconfig).CombinedOutput()
	t.Logf("ingot rollout %s %s: %s", verb, nodeType, said)
	if err != nil {
		t.Fatal(err)
	}
	f.allReady(t, generation)
	eventually(t, takeoverLimit, "the other rendering is stable", func() bool {
		s := f.nodeType(t).Status
		return s.Stable() == s.Target() && (s.Stable() == f.stable) == (generation == "1") && s.Machines.UpToDate == int32(len(f.names))
	})
}
