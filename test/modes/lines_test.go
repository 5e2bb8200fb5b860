package modes

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// TestNoLineLessPassesForAnotherNode removes each line of the documents in turn. Afterwards the verdict may fail, there may
// be no node, or the line may have had no effect. But when the verdict passes, the node must be the one that was ordered:
// with the same drivers, partitions and resources. Lines whose removal the verdict cannot notice are listed in the mode's
// file, with the reason.
func TestNoLineLessPassesForAnotherNode(t *testing.T) {
	removed := map[string]bool{}
	for _, m := range readModes(t) {
		t.Run(m.name, func(t *testing.T) {
			how := m.installMethods()[0]
			whole := m.runAndJudge(t, how, change{})
			for _, c := range slices.Concat(m.documentLineRemovals(t), m.tenantLineRemovals(how)) {
				// What several modes have is taken away in the first, and where GPUs come in another mode.
				if once := c.Of + how + strings.TrimSpace(c.Line); !m.Server.PersistedMIG || c.Of == "tenant" {
					if removed[once] {
						continue
					}
					removed[once] = true
				}
				less := m.run(t, how, c)
				if less.joinError != "" || slices.Equal(less.hardwareState, whole.hardwareState) && slices.Equal(less.requestableFacts(), whole.requestableFacts()) {
					continue
				}
				unseen := slices.ContainsFunc(m.Unseen, func(u string) bool { return strings.Contains(c.Line, u) })
				if !unseen && m.judge(m.plan(t), less.result, less.cluster).Result == v1alpha1.CheckPass {
					t.Errorf("without %q of %s the verdict passes for %q, %q; whole it is %q, %q", c.Line, c.Of, less.hardwareState, less.requestableFacts(), whole.hardwareState, whole.requestableFacts())
				}
			}
		})
	}
}

// tenantLineRemovals returns changes that each remove one line of what is installed in the tenant. The mode must have run
// before.
func (m mode) tenantLineRemovals(how string) []change {
	var out []change
	number := 0
	for line := range strings.Lines(m.cache.tenant[how]) {
		number++
		out = append(out, change{Of: "tenant", Line: strings.TrimSuffix(line, "\n"), number: number})
	}
	return out
}

// documentLineRemovals returns changes that each remove one line of the documents. Lines that occur more than once and
// lines of the kubelet's own files are left out.
func (m mode) documentLineRemovals(t *testing.T) []change {
	t.Helper()
	text := string(m.render(t, m.plan(t)).UserData)
	var out []change
	inKubeletFile := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "path:") || !strings.HasPrefix(line, " ") {
			inKubeletFile = strings.Contains(line, "/etc/kubernetes/") || strings.Contains(line, "/kubelet.service.d/")
		}
		if !inKubeletFile && strings.TrimSpace(line) != "" && strings.Count(text, line) == 1 {
			out = append(out, change{Of: "documents", Line: line})
		}
	}
	return out
}

// requestableFacts returns the facts that pods can request: resources and devices, without labels.
func (s observation) requestableFacts() []string {
	return slices.DeleteFunc(s.facts(), func(fact string) bool {
		name, _, _ := strings.Cut(fact, "=")
		_, isLabel := s.result.Node.Labels[name]
		return isLabel
	})
}
