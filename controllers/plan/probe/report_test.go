package probe

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// pack does what PackCommand does.
func pack(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// ended returns the checks of a pod of that kind which ended with that message, as NAME RESULT: OBSERVED.
func ended(t *testing.T, kind v1alpha1.ProbeKind, message string) []string {
	t.Helper()
	in := ready(kind)
	in.Spec.Level = 2
	in.Run = run(gpu, corev1.PodSucceeded, 0, message)
	var out []string
	for _, c := range Decide(in).Checks {
		if c.Result == v1alpha1.CheckFail && c.Hint == "" {
			t.Errorf("%+v does not say where to look", c)
		}
		if c.Name != CheckLeft {
			out = append(out, fmt.Sprintf("%s %s: %s", strings.TrimPrefix(c.Name, Prefix), c.Result, c.Observed))
		}
	}
	return out
}

func TestReportsOfDCGMBecomeChecks(t *testing.T) {
	test := func(name string, results ...string) string {
		return fmt.Sprintf(`{"name": %q, "results": [%s], "test_summary": {"status": "Pass"}}`, name, strings.Join(results, ","))
	}
	now := func(tests ...string) string {
		return `{"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [` + strings.Join(tests, ",") + `]}]}, "metadata": {"version": "4.2.3"}}`
	}
	pass := func(id int) string {
		return fmt.Sprintf(`{"entity_group": "GPU", "entity_id": %d, "status": "Pass"}`, id)
	}
	for sentence, tt := range map[string]struct {
		report string
		want   []string
	}{
		"every test passes": {now(test("software", pass(0), pass(1)), test("pcie", pass(0), pass(1))), []string{"nvidia.com/gpu Pass: 2 tests pass, 0 are skipped, 0 warn, 0 fail"}},
		"one GPU fails": {now(test("software", pass(0), pass(1)), test("memory", pass(0), `{"entity_group": "GPU", "entity_id": 1, "status": "Fail", "warnings": [{"error_id": 12, "warning": "DBE\u001b[31m found"}]}`)),
			[]string{"nvidia.com/gpu Fail: 1 tests pass, 0 are skipped, 0 warn, 1 fail", "nvidia.com/gpu/memory Fail: GPU 1 DBE?[31m found"}},
		"one is skipped": {now(test("software", pass(0)), test("nvlink", `{"entity_group": "GPU", "entity_id": 0, "status": "Skip"}`)), []string{"nvidia.com/gpu Pass: 1 tests pass, 1 are skipped, 0 warn, 0 fail"}},
		"one warns": {now(test("software", pass(0), `{"entity_group": "GPU", "entity_id": 1, "status": "Warn", "warnings": [{"warning": "Persistence Mode"}]}`)),
			[]string{"nvidia.com/gpu Pass: 0 tests pass, 0 are skipped, 1 warn, 0 fail; software: GPU 1 Persistence Mode"}},
		"all are skipped":      {now(test("software", `{"status": "Skip"}`)), []string{"nvidia.com/gpu Fail: 0 tests pass, 1 are skipped, 0 warn, 0 fail"}},
		"a status of later":    {now(test("software", `{"entity_id": 0, "status": "Degraded"}`)), []string{"nvidia.com/gpu Fail: 0 tests pass, 0 are skipped, 0 warn, 1 fail", `nvidia.com/gpu/software Fail: GPU 0 status "Degraded"`}},
		"a test has no result": {now(test("software")), []string{"nvidia.com/gpu Fail: 0 tests pass, 0 are skipped, 0 warn, 1 fail", "nvidia.com/gpu/software Fail: it has no result"}},
		"DCGM itself fails":    {`{"DCGM Diagnostic": {"runtime_error": "no host engine"}}`, []string{"nvidia.com/gpu Fail: no host engine"}},
		"DCGM 3": {`{"DCGM GPU Diagnostic": {"test_categories": [{"tests": [{"name": "PCIe", "results": [{"gpu_id": "0", "status": "PASS"}, {"gpu_ids": "1", "status": "FAIL", "warnings": "link width"}]}]}]}}`,
			[]string{"nvidia.com/gpu Fail: 0 tests pass, 0 are skipped, 0 warn, 1 fail", "nvidia.com/gpu/PCIe Fail: GPU 1 link width"}},
		"words around it":   {"Warning: MIG\n" + now(test("software", pass(0))) + "\nbye", []string{"nvidia.com/gpu Pass: 1 tests pass, 0 are skipped, 0 warn, 0 fail"}},
		"something else":    {`{}`, []string{"nvidia.com/gpu Fail: 0 tests pass, 0 are skipped, 0 warn, 0 fail"}},
		"no object":         {`pass`, []string{"nvidia.com/gpu Fail: the report is no JSON object: pass"}},
		"an object of text": {`{"DCGM Diagnostic": "all right"}`, []string{"nvidia.com/gpu Fail: the report is no JSON object that is known: json: cannot unmarshal string into Go struct field diagReport.DCGM Diagnostic of type probe.diagnostic"}},
	} {
		if got := ended(t, v1alpha1.ProbeDCGMDiag, pack(t, tt.report)); strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", sentence, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

func TestVerdictsOfHealthValidationBecomeChecks(t *testing.T) {
	for sentence, tt := range map[string]struct {
		verdict string
		want    []string
	}{
		"a pass":          {`{"node": "a", "severity": "PASS", "version": "0.4.0"}`, []string{"nvidia.com/gpu Pass: PASS"}},
		"in another case": {`{"verdict": "info"}`, []string{"nvidia.com/gpu Pass: INFO"}},
		"a warning":       {`{"severity": "WARNING", "affected_components": [{"category": "NVLINK", "max_severity": "WARNING", "check_ids": ["nvlink_replay"]}]}`, []string{"nvidia.com/gpu Pass: WARNING"}},
		"critical": {`{"severity": "CRITICAL", "affected_components": [{"category": "NODE", "max_severity": "CRITICAL", "check_ids": ["gpu_count"], "entities": ["node"]}, {"category": "CPU", "max_severity": "INFO"}]}`,
			[]string{"nvidia.com/gpu Fail: CRITICAL", "nvidia.com/gpu/node Fail: CRITICAL: gpu_count of node"}},
		"nothing was measured":     {`{"severity": "UNKNOWN"}`, []string{"nvidia.com/gpu Fail: UNKNOWN"}},
		"a severity of later":      {`{"severity": "FINE"}`, []string{"nvidia.com/gpu Fail: the verdict has no severity of PASS, INFO, WARNING, CRITICAL, UNKNOWN"}},
		"a part is worse":          {`{"severity": "PASS", "affected_components": [{"category": "GPU", "max_severity": "FATAL", "check_ids": ["a"], "entities": ["0"]}]}`, []string{"nvidia.com/gpu Fail: PASS", "nvidia.com/gpu/gpu Fail: FATAL: a of 0"}},
		"two that contradict":      {`{"severity": "PASS", "worst": "CRITICAL"}`, []string{"nvidia.com/gpu Fail: CRITICAL"}},
		"components of other form": {`{"severity": "PASS", "affected_components": "none"}`, []string{"nvidia.com/gpu Fail: the report is no JSON object that is known: json: cannot unmarshal string into Go struct field .affected_components of type []probe.component"}},
	} {
		if got := ended(t, v1alpha1.ProbeHealthValidation, pack(t, tt.verdict)); strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", sentence, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

func TestMessagesThatAreNoReportFail(t *testing.T) {
	whole := pack(t, strings.Repeat(fmt.Sprint(rand.New(rand.NewPCG(1, 1)).Perm(200)), 3))
	for sentence, tt := range map[string]struct{ message, want string }{
		"nothing":      {" \n", "nvidia.com/gpu Fail: the pod left no report"},
		"words":        {"no devices", "nvidia.com/gpu Fail: the message is no packed report: illegal base64 data at input byte 2"},
		"not packed":   {base64.StdEncoding.EncodeToString([]byte("{}")), "nvidia.com/gpu Fail: unpack the report: unexpected EOF"},
		"cut off":      {whole[:len(whole)/8*4], "nvidia.com/gpu Fail: the report does not fit into a pod's message of 4096 bytes"},
		"far too long": {pack(t, strings.Repeat("a", maxReport+1)), "nvidia.com/gpu Fail: the report is larger than 1048576 bytes"},
	} {
		for _, kind := range []v1alpha1.ProbeKind{v1alpha1.ProbeDCGMDiag, v1alpha1.ProbeHealthValidation} {
			if got := strings.Join(ended(t, kind, tt.message), "\n"); got != tt.want {
				t.Errorf("%s of %s: %s, want %s", sentence, kind, got, tt.want)
			}
		}
	}
}

// TestALongReportFitsIntoAMessage packs what eight GPUs report at the highest level, each with a measurement of its own.
func TestALongReportFitsIntoAMessage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var tests []map[string]any
	for _, name := range []string{"software", "pcie", "memory", "diagnostic", "targeted_stress", "targeted_power", "memory_bandwidth", "memtest", "pulse_test", "eud", "nvbandwidth"} {
		var results []map[string]any
		for id := range 8 {
			results = append(results, map[string]any{
				"entity_group": "GPU", "entity_group_id": 1, "entity_id": id, "status": "Fail", "info": []string{fmt.Sprintf("GPU %d measured %d.%02d GB/s", id, rng.IntN(4000), rng.IntN(100))},
				"warnings": []map[string]any{{"error_category": 7, "error_id": 44, "error_severity": 2, "warning": fmt.Sprintf("GPU %d measured %d, which is below the limit", id, rng.IntN(4000))}},
			})
		}
		tests = append(tests, map[string]any{"name": name, "results": results, "test_summary": map[string]any{"status": "Fail"}})
	}
	text, err := json.MarshalIndent(map[string]any{"DCGM Diagnostic": map[string]any{"test_categories": []any{map[string]any{"category": "Stress", "tests": tests}}}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	packed := pack(t, string(text))
	if len(packed) > 4096 {
		t.Errorf("%d bytes are %d when packed", len(text), len(packed))
	}
	if got := ended(t, v1alpha1.ProbeDCGMDiag, packed); len(got) != 12 {
		t.Errorf("%q", got)
	}
}

func FuzzReports(f *testing.F) {
	f.Add(`{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "a", "results": [{"status": "Pass"}]}]}]}}`)
	f.Add(`{"severity": "PASS", "affected_components": [{"category": "GPU", "max_severity": "INFO"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, message := range []string{text, pack(t, text)} {
			for _, kind := range []v1alpha1.ProbeKind{v1alpha1.ProbeDCGMDiag, v1alpha1.ProbeHealthValidation} {
				for _, line := range ended(t, kind, message) {
					if strings.ContainsAny(line, "\x1b\n\r") || len(line) > 2*maxText {
						t.Errorf("%q", line)
					}
				}
			}
		}
	})
}

func TestTheTimeOfADiagnosticIsThatOfItsLevel(t *testing.T) {
	for level, want := range map[int32]string{1: "5m0s", 2: "15m0s", 3: "45m0s", 4: "4h0m0s"} {
		if got := Timeout(v1alpha1.ProbeSpec{Kind: v1alpha1.ProbeDCGMDiag, Level: level}); got.String() != want {
			t.Errorf("level %d: %s", level, got)
		}
	}
}
