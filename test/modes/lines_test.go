package modes

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// TestNoLineLessPassesForAnotherNode takes the lines of the documents away in turn. The verdict may fail, or there may be no node, or the
// line counted for nothing; but what passes is the node that was ordered: its GPUs are held and cut as they were, and are offered as
// they were. What the verdict cannot see is listed in the mode's file, with why.
func TestNoLineLessPassesForAnotherNode(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range cases(t) {
		t.Run(m.name, func(t *testing.T) {
			how := m.installs()[0]
			whole := m.live(t, how, change{})
			for _, c := range slices.Concat(m.documentLines(t), m.tenantLines(how)) {
				// What several modes have is taken away in the first, and where GPUs come in another mode.
				if once := c.Of + how + strings.TrimSpace(c.Line); !m.Server.PersistedMIG || c.Of == "tenant" {
					if seen[once] {
						continue
					}
					seen[once] = true
				}
				less := m.settle(t, how, c)
				if less.broken != "" || slices.Equal(less.truth, whole.truth) && slices.Equal(less.offers(), whole.offers()) {
					continue
				}
				unseen := slices.ContainsFunc(m.Unseen, func(u string) bool { return strings.Contains(c.Line, u) })
				if !unseen && judge(m.plan(t), less.outcome, less.cluster).Result == v1alpha1.CheckPass {
					t.Errorf("without %q of %s the verdict passes for %q, %q; whole it is %q, %q", c.Line, c.Of, less.truth, less.offers(), whole.truth, whole.offers())
				}
			}
		})
	}
}

// tenantLines take each line away of what is installed, once that was made.
func (m mode) tenantLines(how string) []change {
	var out []change
	number := 0
	for line := range strings.Lines(m.made.tenant[how]) {
		number++
		out = append(out, change{Of: "tenant", Line: strings.TrimSuffix(line, "\n"), number: number})
	}
	return out
}

// documentLines take each line away of the documents that stands there once, but for those of kubelet's own files.
func (m mode) documentLines(t *testing.T) []change {
	t.Helper()
	text := string(m.render(t, m.plan(t)).UserData)
	var out []change
	kubelets := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "path:") || !strings.HasPrefix(line, " ") {
			kubelets = strings.Contains(line, "/etc/kubernetes/") || strings.Contains(line, "/kubelet.service.d/")
		}
		if !kubelets && strings.TrimSpace(line) != "" && strings.Count(text, line) == 1 {
			out = append(out, change{Of: "documents", Line: line})
		}
	}
	return out
}

// offers are what pods can ask for.
func (s seen) offers() []string {
	return slices.DeleteFunc(s.shows(), func(fact string) bool {
		name, _, _ := strings.Cut(fact, "=")
		_, isLabel := s.outcome.Node.Labels[name]
		return isLabel
	})
}
