package probe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// severities of NVIDIA Health Validation (docs.nvidia.com/health-validation). The first two are no finding, and a warning is told and holds no node back.
var severities = []string{"PASS", "INFO", "WARNING", "CRITICAL", "UNKNOWN"}

// component is an entry of affected_components of a NodeVerdict.
type component struct {
	Category string   `json:"category"`
	Severity string   `json:"max_severity"`
	CheckIDs []string `json:"check_ids"`
	Entities []string `json:"entities"`
}

// healthChecks returns the checks of a NodeVerdict of NVIDIA Health Validation: one of the node, and one for each category that is critical or unknown. Only members that
// are documented decide; a verdict without a known severity is no pass.
func healthChecks(c v1alpha1.Check, message string) []v1alpha1.Check {
	var members map[string]any
	if err := unpackObject(message, &members); err != nil {
		return unreadable(c, "health-validation", err)
	}
	var verdict struct {
		Components []component `json:"affected_components"`
	}
	if err := unpackObject(message, &verdict); err != nil {
		return unreadable(c, "health-validation", err)
	}
	severity := nodeSeverity(members)
	var failed []v1alpha1.Check
	for _, part := range verdict.Components {
		if isHarmless(part.Severity) {
			continue
		}
		failed = append(failed, v1alpha1.Check{
			Name: partName(c.Name, strings.ToLower(part.Category)), Result: v1alpha1.CheckFail, Expected: "PASS, INFO or WARNING",
			Observed: input.Line(fmt.Sprintf("%s: %s of %s", part.Severity, strings.Join(part.CheckIDs, ", "), strings.Join(part.Entities, ", ")), maxText),
			Hint:     "NVIDIA Health Validation reports it: docs.nvidia.com/health-validation names what each check means and what to do; the next probe is made in " + RetryInterval.String(),
		})
	}
	c.Observed = severity
	if c.Result = v1alpha1.CheckPass; !isHarmless(severity) || len(failed) > 0 {
		c.Result, c.Hint = v1alpha1.CheckFail, "NVIDIA Health Validation reports it. Run its program on the node by hand: the verdict names the next steps"
	}
	if severity == "" {
		c.Observed = "the verdict has no severity of " + strings.Join(severities, ", ")
	}
	return append([]v1alpha1.Check{c}, limited(c.Name, failed)...)
}

func isHarmless(severity string) bool {
	at := slices.Index(severities, strings.ToUpper(severity))
	return at >= 0 && at <= slices.Index(severities, "WARNING")
}

// nodeSeverity returns the severity of the node: the worst of the verdict's own members whose value is one. Which member has it differs by release.
func nodeSeverity(members map[string]any) string {
	worst := -1
	for _, value := range members {
		if text, ok := value.(string); ok {
			worst = max(worst, slices.Index(severities, strings.ToUpper(text)))
		}
	}
	if worst < 0 {
		return ""
	}
	return severities[worst]
}
