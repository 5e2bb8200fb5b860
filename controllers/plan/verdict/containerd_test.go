package verdict

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAReportOfContainerdCanOnlyMakeItsCheckFail(t *testing.T) {
	for sentence, tt := range map[string]struct {
		report, result string
		hint           string
		required       bool
	}{
		"all is there":                {"boot-1 ok", "Pass", "", false},
		"the drop-in is not imported": {"boot-1 nvidia-runtime,sandbox-image,imports", "Fail", "does not import the drop-in", false},
		"the runtime is missing":      {"boot-1 nvidia-runtime", "Fail", "install NVIDIA's container toolkit", false},
		"a text of somebody":          {"boot-1 everything", "Fail", "journalctl -u ingot-containerd", false},
		"the last boot's":             {"boot-0 cdi", "", "", false},
		"no report":                   {"", "", "", false},
		"a variable gives GPUs":       {"boot-1 nvidia-environment", "Fail", "NVIDIA_VISIBLE_DEVICES", true},
		"it gives none":               {"boot-1 ok", "Pass", "", true},
		"none, and it must be":        {"", "Wait", "journalctl -u ingot-containerd", true},
		"the last boot's must be new": {"boot-0 ok", "Wait", "has not reported in this boot", true},
	} {
		in := perfectInput()
		in.Node.Annotations, in.Expectation.ContainerdReport = map[string]string{v1alpha1.AnnotationContainerd: tt.report}, tt.required
		d := Judge(in)
		var got v1alpha1.Check
		for _, c := range d.Verdict.Checks {
			if c.Name == CheckContainerd {
				got = c
			}
		}
		if string(got.Result) != tt.result || !strings.Contains(got.Hint, tt.hint) {
			t.Errorf("%s: %+v, want %s with %q", sentence, got, tt.result, tt.hint)
		}
		if isPass := d.Verdict.Result == v1alpha1.CheckPass; isPass != (tt.result == "Pass" || tt.result == "") {
			t.Errorf("%s: the verdict is %s", sentence, d.Verdict.Result)
		}
		gpus(&in, "7", "7")
		if d := Judge(in); d.Verdict.Result == v1alpha1.CheckPass {
			t.Errorf("%s: with the report a node with a GPU less passes", sentence)
		}
	}
}
