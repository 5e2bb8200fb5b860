package verdict

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAReportOfTheGPUModeCanOnlyMakeItsCheckFail(t *testing.T) {
	required := func(in *Input) { in.GPUModeReport = v1alpha1.ReportRequired }
	for sentence, tt := range map[string]struct {
		report   string
		change   func(*Input)
		result   v1alpha1.CheckResult
		observed string
	}{
		"as ordered":                           {"boot-1 Disabled Disabled", nil, v1alpha1.CheckPass, "2 Disabled"},
		"one GPU left in MIG mode":             {"boot-1 Disabled Enabled", nil, v1alpha1.CheckFail, "1 Disabled, 1 Enabled"},
		"one GPU less":                         {"boot-1 Disabled", nil, v1alpha1.CheckFail, "1 Disabled"},
		"a report without a GPU":               {"boot-1", nil, v1alpha1.CheckFail, ""},
		"a text of somebody":                   {"boot-1 everything is fine", nil, v1alpha1.CheckFail, "1 everything, 1 is, 1 fine"},
		"no report":                            {"", nil, v1alpha1.CheckPass, "not reported"},
		"the last boot's":                      {"boot-0 Enabled Enabled", nil, v1alpha1.CheckPass, "not reported"},
		"no report, which is required":         {"", required, v1alpha1.CheckWait, "not reported"},
		"the last boot's, and one is required": {"boot-0 Disabled Disabled", required, v1alpha1.CheckWait, "not reported"},
		"none until the deadline":              {"", func(in *Input) { required(in); in.Deadline = start }, v1alpha1.CheckFail, "not reported"},
		"as ordered, and required":             {"boot-1 Disabled Disabled", required, v1alpha1.CheckPass, "2 Disabled"},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := perfectInput()
			in.Expectation.GPUModes = []string{"Disabled", "Disabled"}
			in.Node.Annotations = map[string]string{v1alpha1.AnnotationGPUMode: tt.report}
			if tt.change != nil {
				tt.change(&in)
			}
			d := Judge(in)
			if c := find(t, d, CheckGPUModes); c.Result != tt.result || c.Observed != tt.observed || d.Verdict.Result != tt.result {
				t.Errorf("%+v, the verdict is %s; want %s with %q", c, d.Verdict.Result, tt.result, tt.observed)
			}
			says := "not as ordered"
			if len(strings.Fields(tt.report)) != 3 {
				says = "of the 2 GPUs that are ordered"
			}
			if c := find(t, d, CheckGPUModes); c.Observed != "not reported" && (c.Result == v1alpha1.CheckFail) != strings.Contains(c.Hint, says) {
				t.Errorf("the hint is %q, expected %q", c.Hint, says)
			}
			gpus(&in, "7", "7")
			if d := Judge(in); d.Verdict.Result == v1alpha1.CheckPass {
				t.Error("with the report a node with a GPU less passes")
			}
		})
	}
	in := perfectInput()
	in.GPUModeReport, in.Node.Annotations = v1alpha1.ReportRequired, map[string]string{v1alpha1.AnnotationGPUMode: "boot-1 Enabled"}
	if d := Judge(in); d.Verdict.Result != v1alpha1.CheckPass {
		t.Errorf("a rendering of before promises no report, and the verdict is %s: %s", d.Verdict.Result, d.Message)
	}
}
