package verify

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// Report is what `-o json` prints.
type Report struct {
	NodeType string `json:"nodeType"`
	Node     string `json:"node"`
	// Result: Fail when a check fails, else Wait when one waits, else Pass.
	Result v1alpha1.CheckResult `json:"result"`
	// Checks in the order of their importance.
	Checks []v1alpha1.Check `json:"checks"`
	// NotCompared is what the files do not have, and how to get it.
	NotCompared []string `json:"notCompared"`
}

// Judge returns the verdict on a node.
func Judge(s offline.NodeInputs, e v1alpha1.NodeExpectation, observation Observation, now time.Time) Report {
	in := verdict.Input{
		Clock: watched.Clock{Now: now}, Expectation: e, Node: &observation.node, DaemonSets: observation.daemonSets, Gate: s.NodeType.Spec.Gate.Key(),
		// Without a file of slices the expectation has none either, and the report does not mention them.
		SlicesServed: true, Slices: observation.slices, HasBeenReady: !verdict.HasGate(&observation.node, s.NodeType.Spec.Gate.Key()), DeviceClasses: neededClasses(e, observation), Kubelet: s.NodeType.Spec.KubeletMembers(),
	}
	if m := observation.machine; m != nil {
		in.HasBeenReady = m.Status.HasBeenReady()
		in.Identity = verdict.Identity{Claim: nodeidentity.ClaimOf(m.ClaimUID(), m.Status), Revision: m.Status.Revision, Rendering: m.Status.Rendering}
	}
	checks := verdict.Judge(in).Verdict.Checks
	out := Report{NodeType: s.NodeType.Name, Node: observation.node.Name, NotCompared: notCompared(e, observation)}
	out.Checks = slices.DeleteFunc(checks, func(c v1alpha1.Check) bool {
		return observation.machine == nil && c.Name == verdict.CheckProviderID || observation.classes == nil && strings.HasPrefix(c.Name, verdict.PrefixDeviceClass)
	})
	out.Result = out.overallResult()
	return out
}

// neededClasses returns the classes that the expectation needs. Those that the file does not have are marked as missing.
func neededClasses(e v1alpha1.NodeExpectation, observation Observation) map[string]verdict.DeviceClass {
	if observation.classes == nil {
		return nil
	}
	out := map[string]verdict.DeviceClass{}
	for _, s := range e.Slices {
		for _, c := range s.DeviceClasses {
			class, ok := observation.classes[c.Name]
			if !ok {
				class.Missing = true
			}
			out[c.Name] = class
		}
	}
	return out
}

// notCompared returns what cannot be compared, because the files do not have it.
func notCompared(e v1alpha1.NodeExpectation, observation Observation) []string {
	out := []string{}
	if observation.machine == nil {
		out = append(out, "which installation the Node is: give its Machine with -f and --machine")
	}
	if !observation.slicesRead && len(e.AbsentDrivers) > 0 {
		out = append(out, "that no DRA driver gives the same GPUs away: give --slices")
	}
	var missing []string
	for _, l := range e.Labels {
		if _, exists := observation.node.Labels[l.Key]; !exists {
			missing = append(missing, l.Key)
		}
	}
	if len(missing) > 0 {
		out = append(out, "what labels tell that the Node does not have, because the software that sets them does not run or has not finished: "+strings.Join(missing, ", "))
	}
	if observation.classes == nil && len(e.Slices) > 0 {
		out = append(out, "what the DeviceClasses select: give --deviceclasses")
	}
	return out
}

// overallResult is the result of the checks that are compared.
func (r Report) overallResult() v1alpha1.CheckResult {
	out := v1alpha1.CheckPass
	for _, c := range r.Checks {
		if c.Result == v1alpha1.CheckFail {
			return c.Result
		}
		if c.Result == v1alpha1.CheckWait {
			out = c.Result
		}
	}
	return out
}

// decidingCheck is the first check with the overall result.
func (r Report) decidingCheck() v1alpha1.Check {
	for _, c := range r.Checks {
		if c.Result == r.Result {
			return c
		}
	}
	return v1alpha1.Check{}
}

// failure returns an error unless every check passes.
func (r Report) failure() error {
	if r.Result == v1alpha1.CheckPass {
		return nil
	}
	c := r.decidingCheck()
	what := "does not pass"
	if r.Result == v1alpha1.CheckWait {
		what = "does not pass yet"
	}
	return fmt.Errorf("the Node %s %s: %s: expected %s, observed %s", r.Node, what, c.Name, c.Expected, orNothing(c.Observed))
}

func orNothing(observed string) string {
	if observed == "" {
		return "nothing"
	}
	return observed
}

func (r Report) write(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "Node %s as NodeType %s: %s\n\n", r.Node, r.NodeType, r.Result); err != nil {
		return err
	}
	table := [][]string{{"RESULT", "CHECK", "EXPECTED", "OBSERVED"}}
	for _, c := range r.Checks {
		table = append(table, []string{string(c.Result), c.Name, c.Expected, orNothing(c.Observed)})
	}
	if err := cli.WriteTable(w, table); err != nil {
		return err
	}
	var notes []string
	for _, c := range r.Checks {
		if c.Hint != "" && c.Result != v1alpha1.CheckPass {
			notes = append(notes, c.Name+": "+c.Hint)
		}
	}
	for _, n := range r.NotCompared {
		notes = append(notes, "not compared: "+n)
	}
	for i, n := range notes {
		before := ""
		if i == 0 {
			before = "\n"
		}
		if _, err := fmt.Fprintf(w, "%s%s\n", before, n); err != nil {
			return err
		}
	}
	return nil
}
