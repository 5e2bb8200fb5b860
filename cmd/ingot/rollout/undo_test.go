package rollout_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/controllers/plan/revision"
)

// addRevision keeps what the NodeType would be with that user data and the first image, with renderings.
func (s *site) addRevision(suffix, userData string, renderings ...string) {
	s.t.Helper()
	nodeType, provider, image := s.nodeType(), &v1alpha1.NodeProvider{}, &v1alpha1.OSImage{}
	nodeType.Spec.UserData, nodeType.Spec.OSImageRef.Name = userData, s.name+"-1"
	for name, object := range map[string]client.Object{s.name: provider, s.name + "-1": image} {
		if err := server.Client.Get(s.t.Context(), client.ObjectKey{Name: name}, object); err != nil {
			s.t.Fatal(err)
		}
	}
	in := revision.Inputs{NodeType: nodeType, Provider: provider, Image: image}
	spec, err := revision.Build(in)
	if err != nil {
		s.t.Fatal(err)
	}
	own, err := revision.OwnDigest(in)
	if err != nil {
		s.t.Fatal(err)
	}
	server.Create(s.t, &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + suffix, Annotations: map[string]string{v1alpha1.AnnotationInputs: own}}, Spec: spec})
	s.addRenderings(suffix, renderings...)
}

func (s *site) addRenderings(suffix string, renderings ...string) {
	s.t.Helper()
	for _, r := range renderings {
		server.Create(s.t, &v1alpha1.NodeTypeRendering{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + suffix + "-" + r}, Spec: v1alpha1.NodeTypeRenderingSpec{
			RevisionRef: v1alpha1.LocalReference{Name: s.name + "-" + suffix}, Encoding: v1alpha1.RenderingEncoding,
		}})
	}
}

// pair is a revision and its rendering, written as revision/rendering.
func (s *site) pair(name string) v1alpha1.RenderedRevision {
	suffix, rendering, _ := strings.Cut(name, "/")
	return v1alpha1.RenderedRevision{Revision: s.name + "-" + suffix, Rendering: s.name + "-" + suffix + "-" + rendering}
}

func (s *site) addRollout(number int, from, to string, phase v1alpha1.RolloutPhase) string {
	s.t.Helper()
	f, t := s.pair(from), s.pair(to)
	name := fmt.Sprintf("%s-%d", t.Revision, number)
	server.Create(s.t, &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RolloutSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: s.name}, From: f.Revision, FromRendering: f.Rendering, To: t.Revision, ToRendering: t.Rendering,
	}, Status: v1alpha1.RolloutStatus{
		Phase: phase, InProgress: []string{"research/training-9"}, Targets: v1alpha1.RolloutTargets{Total: 4, Done: 3, InProgress: 1},
	}})
	return name
}

// finished is a site whose rollouts went from one to two, from two to three, which stopped, and back: two is stable, and what it asks for.
func finished(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	if err := server.Client.Delete(t.Context(), s.get()); err != nil {
		t.Fatal(err)
	}
	s.addRevision("two", "#cloud-config\npackages: [two]\n", "a", "b")
	s.addRevision("three", "#cloud-config\npackages: [three]\n", "a")
	s.addRollout(4, "one/a", "two/a", v1alpha1.RolloutDone)
	s.addRollout(5, "two/a", "two/b", v1alpha1.RolloutDone)
	s.addRollout(6, "two/b", "three/a", v1alpha1.RolloutSuperseded)
	s.addRollout(7, "three/a", "two/b", v1alpha1.RolloutDone)
	s.settle("two/b")
	return s
}

// settle sets what the NodeType's status says once a rollout is done.
func (s *site) settle(is string) {
	pair := s.pair(is)
	s.judged(func(n *v1alpha1.NodeTypeStatus) {
		n.StableRevision, n.StableRendering, n.TargetRevision, n.TargetRendering = pair.Revision, pair.Rendering, pair.Revision, pair.Rendering
	})
}

func TestAFinishedRolloutIsUndoneToWhatWasAdmittedBefore(t *testing.T) {
	s := finished(t)
	status, out, stderr := s.run("undo", s.name)
	if got := s.nodeType().Spec.Rendering; status != cli.ExitOK || got != s.name+"-two-a" {
		t.Errorf("the refresh: status %d: %s%s; spec.rendering %s", status, out, stderr, got)
	}
	s.settle("two/a")
	s.addRollout(8, "two/b", "two/a", v1alpha1.RolloutDone)
	if status, out, stderr := s.run("undo", s.name); status != cli.ExitOK || s.nodeType().Spec.Rendering != s.name+"-two-b" {
		t.Errorf("the undo of the undo: status %d: %s%s; spec.rendering %s", status, out, stderr, s.nodeType().Spec.Rendering)
	}
}

func TestUndoGoesToAnyRevisionThatIsKept(t *testing.T) {
	s := finished(t)
	before := s.nodeType()
	if status, out, stderr := s.run("undo", s.name, "--to-revision", s.name+"-one", "--dry-run"); status != cli.ExitOK || !strings.Contains(out, "nothing was changed") || s.nodeType().ResourceVersion != before.ResourceVersion {
		t.Errorf("dry run: status %d: %s%s", status, out, stderr)
	}
	status, out, stderr := s.run("undo", s.name, "--to-revision", s.name+"-one")
	if spec := s.nodeType().Spec; status != cli.ExitOK || spec.Rendering != s.name+"-one-a" || spec.OSImageRef.Name != s.name+"-1" || spec.UserData != "#cloud-config\n" {
		t.Errorf("status %d: %s%s; spec %+v", status, out, stderr, spec)
	}
	s.settle("one/a")
	for rendering, args := range map[string][]string{
		s.name + "-three-a": {"--to-revision", s.name + "-three"},
		s.name + "-two-b":   {"--to-revision", s.name + "-two"},
		s.name + "-two-a":   {"--to-rendering", s.name + "-two-a"},
	} {
		status, out, stderr := s.run(append([]string{"undo", s.name}, args...)...)
		if spec := s.nodeType().Spec; status != cli.ExitOK || spec.Rendering != rendering || !strings.Contains(spec.UserData, strings.TrimPrefix(rendering[:len(rendering)-2], s.name+"-")) {
			t.Errorf("%v: status %d: %s%s; spec %+v", args, status, out, stderr, spec)
		}
		s.judged(func(*v1alpha1.NodeTypeStatus) {})
	}
}

func TestUndoRefusesWhatItCannotReach(t *testing.T) {
	s := finished(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--to-revision", "nothing"}, "has no revision nothing: kept are, the newest first: "},
		{[]string{"--to-revision", "nothing"}, s.name + "-three"},
		{[]string{"--to-rendering", "nothing"}, "there is no rendering nothing of NodeType " + s.name + ": kept are " + s.name + "-one-a, " + s.name + "-three-a, " + s.name + "-two-a"},
		{[]string{"--to-revision", s.name + "-one", "--to-rendering", s.name + "-two-a"}, "there is no rendering " + s.name + "-two-a of " + s.name + "-one: kept are " + s.name + "-one-a"},
		{[]string{"--to-revision", s.name + "-two"}, "already"},
	} {
		if status, _, stderr := s.run(append([]string{"undo", s.name}, c.args...)...); status != cli.ExitFailed || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d: %s", c.args, status, stderr)
		}
	}
	if status, _, stderr := s.run("undo", "nothing"); status != cli.ExitFailed || !strings.Contains(stderr, "NodeTypes are ") || !strings.Contains(stderr, s.name) {
		t.Errorf("an unknown NodeType: status %d: %s", status, stderr)
	}
	before := s.nodeType().ResourceVersion
	image := &v1alpha1.OSImage{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: s.name + "-1"}, image); err != nil {
		t.Fatal(err)
	}
	image.Status.Checksum = "sha256:" + strings.Repeat("9", 64)
	if err := server.Client.Status().Update(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := s.run("undo", s.name, "--to-revision", s.name+"-one"); status != cli.ExitFailed || !strings.Contains(stderr, "cannot be set back to "+s.name+"-one") || !strings.Contains(stderr, "nothing was changed") {
		t.Errorf("another image of the same name: status %d: %s", status, stderr)
	}
	if err := server.Client.Delete(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := s.run("undo", s.name, "--to-revision", s.name+"-one"); status != cli.ExitFailed || !strings.Contains(stderr, "create it again with checksum sha256:1111") {
		t.Errorf("no image: status %d: %s", status, stderr)
	}
	if s.nodeType().ResourceVersion != before {
		t.Error("a refused undo changed the NodeType")
	}
}

func TestStatusKnowsEveryRolloutAndSaysWhichThereAre(t *testing.T) {
	s := finished(t)
	if status, out, stderr := s.run("status", s.name+"-three-6"); status != cli.ExitOK || !strings.Contains(out, s.name+"-three-6: Superseded, 3 of 4 done, 0 under way") || strings.Contains(out, "training-9") {
		t.Errorf("a superseded one that an earlier version settled: status %d: %s%s", status, out, stderr)
	}
	if _, out, _ := s.run("status", s.name); !strings.Contains(out, s.name+"-two-7: Done") {
		t.Errorf("the latest of the NodeType: %s", out)
	}
	_, out, _ := s.run("status", s.name+"-two-4", "-o", "json")
	var all []v1alpha1.Rollout
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 || all[0].Name != s.name+"-two-4" {
		t.Errorf("%v in %s", err, out)
	}
	if status, _, stderr := s.run("status", "nothing"); status != cli.ExitFailed || !strings.Contains(stderr, "there is no NodeType and no Rollout nothing") || !strings.Contains(stderr, s.name+"-two-5") {
		t.Errorf("an unknown name: status %d: %s", status, stderr)
	}
	for _, line := range strings.Split(mustRun(s, "status"), "\n") {
		if strings.Contains(line, s.name+"-three-6") && strings.Fields(line)[4] != "0" {
			t.Errorf("the table says %s", line)
		}
	}
}

func TestHistoryShowsWhatUndoCanGoBackTo(t *testing.T) {
	s := finished(t)
	out := mustRun(s, "history", s.name)
	for rendering, is := range map[string]string{"two-b": "stable, target", "two-a": "admitted before", "one-a": "admitted before", "three-a": ""} {
		found := false
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, s.name+"-"+rendering) {
				found = strings.HasSuffix(line, is) && (is != "" || !strings.Contains(line, "before"))
			}
		}
		if !found {
			t.Errorf("%s is not %q in\n%s", rendering, is, out)
		}
	}
	if !strings.Contains(mustRun(s, "history", s.name, "-o", "json"), `"revision": "`+s.name+`-three"`) {
		t.Error("the JSON misses a revision")
	}
}

func mustRun(s *site, args ...string) string {
	s.t.Helper()
	status, out, stderr := s.run(args...)
	if status != cli.ExitOK {
		s.t.Fatalf("%v: status %d: %s", args, status, stderr)
	}
	return out
}
