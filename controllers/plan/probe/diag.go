package probe

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// diagReport is what dcgmi diag -j writes: DCGM 4 under the first key, DCGM 3 under the second (nvvs/include/NvvsJsonStrings.h of NVIDIA/DCGM).
type diagReport struct {
	Now    diagnostic `json:"DCGM Diagnostic"`
	Before diagnostic `json:"DCGM GPU Diagnostic"`
}

type diagnostic struct {
	RuntimeError string `json:"runtime_error"`
	Categories   []struct {
		Tests []diagTest `json:"tests"`
	} `json:"test_categories"`
}

type diagTest struct {
	Name    string       `json:"name"`
	Results []diagResult `json:"results"`
}

// diagResult is the result of a test for one entity. DCGM 4 names it by entity_group and entity_id, DCGM 3 by gpu_id or gpu_ids.
type diagResult struct {
	Status   string          `json:"status"`
	Group    string          `json:"entity_group"`
	Entity   json.RawMessage `json:"entity_id"`
	GPU      json.RawMessage `json:"gpu_id"`
	GPUs     json.RawMessage `json:"gpu_ids"`
	Warnings json.RawMessage `json:"warnings"`
}

// diagChecks returns the checks of a report of dcgmi diag: one for all tests, and one for each that does not pass. A test that was skipped says nothing, and a warning
// is told and holds no node back: that of a GPU without persistence mode is one.
func diagChecks(c v1alpha1.Check, message string) []v1alpha1.Check {
	var report diagReport
	if err := unpackObject(message, &report); err != nil {
		return unreadable(c, "dcgmi diag", err)
	}
	found := report.Now
	if len(found.Categories) == 0 && found.RuntimeError == "" {
		found = report.Before
	}
	counts, failed, warned := found.count(c.Name)
	c.Observed = fmt.Sprintf("%d tests pass, %d are skipped, %d warn, %d fail", counts["pass"], counts["skip"], counts["warn"], len(failed))
	c.Result = v1alpha1.CheckPass
	switch {
	case found.RuntimeError != "":
		c.Result, c.Observed = v1alpha1.CheckFail, input.Line(found.RuntimeError, maxText)
	case len(failed) > 0 || counts["pass"]+counts["warn"] == 0:
		c.Result = v1alpha1.CheckFail
	case warned != "":
		c.Observed = input.Line(c.Observed+"; "+warned, maxText)
	}
	if c.Result == v1alpha1.CheckFail {
		c.Hint = "a test of dcgmi diag failed, or none ran. On the node, with nothing on its GPUs: dcgmi diag -r LEVEL"
	}
	return append([]v1alpha1.Check{c}, limited(c.Name, failed)...)
}

// count returns how many tests have each status, the checks of those that fail, and the last warning.
func (d diagnostic) count(target string) (counts map[string]int, failed []v1alpha1.Check, warned string) {
	counts = map[string]int{}
	for _, category := range d.Categories {
		for _, test := range category.Tests {
			status, text := test.outcome()
			counts[status]++
			switch status {
			case "pass", "skip":
			case "warn":
				warned = test.Name + ": " + text
			default:
				failed = append(failed, v1alpha1.Check{
					Name: partName(target, test.Name), Result: v1alpha1.CheckFail, Expected: "Pass", Observed: input.Line(text, maxText),
					Hint: "dcgmi diag reports it. On the node, with nothing on its GPUs: dcgmi diag -r LEVEL; the next probe is made in " + RetryInterval.String(),
				})
			}
		}
	}
	return counts, failed, warned
}

// outcome is the worst status of the test, in lower case, and what its entities with that status say. A status that is not known is no pass.
func (t diagTest) outcome() (status, text string) {
	order := []string{"", "skip", "pass", "warn", "fail"}
	worst := 0
	for _, r := range t.Results {
		known := rankOf(order, strings.ToLower(strings.TrimSpace(r.Status)))
		if known < worst {
			continue
		}
		if known > worst {
			text = ""
		}
		worst = known
		text = strings.TrimPrefix(text+", "+strings.TrimSpace(r.entity()+" "+warningsText(r.Warnings)+r.unknownStatus(order)), ", ")
	}
	if worst == 0 {
		return "fail", "it has no result"
	}
	return order[worst], text
}

// rankOf returns how bad a status is. One that is not known counts as a failure, and "not run" as skipped.
func rankOf(order []string, status string) int {
	switch strings.ReplaceAll(status, " ", "") {
	case "notrun", "skipped":
		status = "skip"
	case "warning":
		status = "warn"
	}
	for i := 1; i < len(order); i++ {
		if order[i] == status {
			return i
		}
	}
	return len(order) - 1
}

// unknownStatus quotes a status that is not known.
func (r diagResult) unknownStatus(order []string) string {
	status := strings.ToLower(strings.TrimSpace(r.Status))
	if rankOf(order, status) == len(order)-1 && status != "fail" {
		return fmt.Sprintf("status %q", r.Status)
	}
	return ""
}

// entity names the device of a result, as in GPU 3.
func (r diagResult) entity() string {
	for _, id := range []json.RawMessage{r.Entity, r.GPU, r.GPUs} {
		if text := strings.Trim(string(id), `"`); text != "" && text != "null" {
			if r.Group == "" {
				return "GPU " + text
			}
			return r.Group + " " + text
		}
	}
	return ""
}

// warningsText returns the warnings of a result: a text, texts, or objects with a text.
func warningsText(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var many []json.RawMessage
	if json.Unmarshal(raw, &many) != nil {
		return ""
	}
	var out []string
	for _, m := range many {
		var object struct {
			Warning string `json:"warning"`
		}
		if json.Unmarshal(m, &one) == nil {
			out = append(out, one)
		} else if json.Unmarshal(m, &object) == nil {
			out = append(out, object.Warning)
		}
	}
	return strings.Join(out, "; ")
}
