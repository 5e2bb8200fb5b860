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
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
)

// Report is what `-o json` prints.
type Report struct {
	NodeType string `json:"nodeType"`
	Node     string `json:"node"`
	// Result: Fail when a check fails, else Wait when one waits, else Pass.
	Result v1alpha1.CheckResult `json:"result"`
	// Checks in the order of their importance.
	Checks []v1alpha1.Check `json:"checks"`
	// NotCompared is what the files do not tell, and how to get it.
	NotCompared []string `json:"notCompared"`
}

// Judge gives the verdict on a node.
func Judge(s offline.Shape, e v1alpha1.NodeExpectation, seen Seen, now time.Time) Report {
	in := verdict.Input{
		Now: now, Expectation: e, Node: &seen.node, DaemonSets: seen.daemonSets, Gate: s.NodeType.Spec.Gate.Key(),
		// Where nobody gave the slices, none are expected: nothing is said about them.
		SlicesServed: true, Slices: seen.slices, DeviceClasses: classesOf(e, seen),
		Identity: verdict.Identity{ProviderID: seen.node.Spec.ProviderID},
	}
	if m := seen.machine; m != nil {
		in.Identity = verdict.Identity{ProviderID: v1alpha1.ProviderID(m.UID, m.Status.Attempt), SystemUUID: m.Status.SystemUUID, Revision: m.Status.Revision, Rendering: m.Status.Rendering}
	}
	checks := verdict.Judge(in).Verdict.Checks
	out := Report{NodeType: s.NodeType.Name, Node: seen.node.Name, NotCompared: unknown(e, seen)}
	out.Checks = slices.DeleteFunc(checks, func(c v1alpha1.Check) bool {
		return seen.machine == nil && c.Name == verdict.CheckProviderID || seen.classes == nil && strings.HasPrefix(c.Name, verdict.PrefixDeviceClass)
	})
	out.Result = out.summary()
	return out
}

// classesOf marks the classes that are needed and not in the file as missing in the cluster.
func classesOf(e v1alpha1.NodeExpectation, seen Seen) map[string]verdict.DeviceClass {
	if seen.classes == nil {
		return nil
	}
	out := map[string]verdict.DeviceClass{}
	for _, s := range e.Slices {
		for _, c := range s.DeviceClasses {
			class, ok := seen.classes[c.Name]
			if !ok {
				class.Missing = true
			}
			out[c.Name] = class
		}
	}
	return out
}

// unknown is what the files do not tell.
func unknown(e v1alpha1.NodeExpectation, seen Seen) []string {
	out := []string{}
	if seen.machine == nil {
		out = append(out, "which installation the Node is: give its Machine with -f and --machine")
	}
	if !seen.slicesRead && len(e.AbsentDrivers) > 0 {
		out = append(out, "that no DRA driver gives the same GPUs away: give --slices")
	}
	var missing []string
	for _, l := range e.Labels {
		if _, there := seen.node.Labels[l.Key]; !there {
			missing = append(missing, l.Key)
		}
	}
	if len(missing) > 0 {
		out = append(out, "what labels tell that the Node does not have, because the software that sets them does not run or has not finished: "+strings.Join(missing, ", "))
	}
	if seen.classes == nil && len(e.Slices) > 0 {
		out = append(out, "what the DeviceClasses select: give --deviceclasses")
	}
	return out
}

// summary is that of the checks that are left.
func (r Report) summary() v1alpha1.CheckResult {
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

// first is the check that decides.
func (r Report) first() v1alpha1.Check {
	for _, c := range r.Checks {
		if c.Result == r.Result {
			return c
		}
	}
	return v1alpha1.Check{}
}

// failure is an error unless every check passes.
func (r Report) failure() error {
	if r.Result == v1alpha1.CheckPass {
		return nil
	}
	c := r.first()
	what := "does not pass"
	if r.Result == v1alpha1.CheckWait {
		what = "does not pass yet"
	}
	return fmt.Errorf("the Node %s %s: %s: expected %s, observed %s", r.Node, what, c.Name, c.Expected, or(c.Observed))
}

func or(observed string) string {
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
		table = append(table, []string{string(c.Result), c.Name, c.Expected, or(c.Observed)})
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
