package modes

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// often is in how many modes a line is taken away that several have.
const often = 2

// TestNoLineLessPassesForAnotherNode takes the lines of the documents away in turn. The verdict may fail, or there may be no node, or the
// line counted for nothing; but what passes is the node that was ordered: its GPUs are held and cut as they were, and are offered as
// they were. What the verdict cannot see is listed in the mode's file, with why.
func TestNoLineLessPassesForAnotherNode(t *testing.T) {
	seen := map[string]int{}
	for _, m := range cases(t) {
		t.Run(m.name, func(t *testing.T) {
			how := m.installs()[0]
			whole := m.live(t, how, change{})
			for _, line := range m.lines(t) {
				if seen[line]++; seen[line] > often && !m.Server.PersistedMIG {
					continue
				}
				less := m.live(t, how, change{Of: "documents", Line: line})
				differs := less.broken == "" && less.verdict.Result == v1alpha1.CheckPass &&
					!(slices.Equal(less.truth, whole.truth) && slices.Equal(less.offers(), whole.offers()))
				unseen := slices.ContainsFunc(m.Unseen, func(u string) bool { return strings.Contains(line, u) })
				if differs && !unseen {
					t.Errorf("without %q the verdict passes for %q, %q; whole it is %q, %q", line, less.truth, less.offers(), whole.truth, whole.offers())
				}
			}
		})
	}
}

// lines are those of the documents that each stand there once, so that they can be taken away by their text, but for those of kubelet's
// own files.
func (m mode) lines(t *testing.T) []string {
	t.Helper()
	text := string(m.render(t, m.plan(t)).UserData)
	var out []string
	kubelets := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "path:") || !strings.HasPrefix(line, " ") {
			kubelets = strings.Contains(line, "/etc/kubernetes/") || strings.Contains(line, "/kubelet.service.d/")
		}
		if !kubelets && strings.TrimSpace(line) != "" && strings.Count(text, line) == 1 {
			out = append(out, line)
		}
	}
	return out
}

// offers are the facts of the node that pods ask for.
func (s seen) offers() []string {
	return slices.DeleteFunc(s.shows(), func(fact string) bool {
		return strings.Contains(fact, "kubernetes.io/") || !strings.Contains(fact, "/") || strings.Contains(fact, "gpu.deploy.")
	})
}
