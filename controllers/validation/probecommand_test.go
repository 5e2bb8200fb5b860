package validation

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/probe"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// runContainer runs the container of a probe with programs of the test in place of the image's. It returns the pod's end as the kubelet reports it.
func runContainer(t *testing.T, spec v1alpha1.ProbeSpec, programs map[string]string) *probe.Run {
	t.Helper()
	dir := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	message := filepath.Join(dir, "message")
	var words []string
	for _, w := range probeCommand(spec) {
		words = append(words, strings.NewReplacer(corev1.TerminationMessagePathDefault, message, "/tmp", dir).Replace(w))
	}
	command := exec.Command(words[0], words[1:]...)
	command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	log, err := command.Output()
	run := &probe.Run{Target: "nvidia.com/gpu", Phase: corev1.PodSucceeded, Created: time.Now()}
	if err != nil {
		run.Phase, run.ExitCode, run.Message = corev1.PodFailed, int32(command.ProcessState.ExitCode()), string(log)
	}
	if text, err := os.ReadFile(message); err == nil && len(text) > 0 {
		run.Message = string(text)
	}
	return run
}

func TestTheContainersOfTheProbesLeaveWhatIsRead(t *testing.T) {
	diag := v1alpha1.ProbeSpec{Kind: v1alpha1.ProbeDCGMDiag, Level: 2}
	health := v1alpha1.ProbeSpec{Kind: v1alpha1.ProbeHealthValidation}
	const engine = "exit 0"
	report := `[ "$1" = discovery ] && exit 0; [ "$*" = "diag -r 2 -j" ] || exit 9
echo '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "pcie", "results": [{"entity_id": 0, "status": "STATUS"}]}]}]}}'; exit CODE`
	with := func(status, code string) map[string]string {
		return map[string]string{"nv-hostengine": engine, "dcgmi": strings.NewReplacer("STATUS", status, "CODE", code).Replace(report)}
	}
	for sentence, tt := range map[string]struct {
		spec     v1alpha1.ProbeSpec
		programs map[string]string
		want     string
	}{
		"every test passes":            {diag, with("Pass", "0"), "Pass: 1 tests pass, 0 are skipped, 0 warn, 0 fail"},
		"a test fails":                 {diag, with("Fail", "226"), "Fail: 0 tests pass, 0 are skipped, 0 warn, 1 fail"},
		"no report, although it is 0":  {diag, map[string]string{"nv-hostengine": engine, "dcgmi": "[ $1 = discovery ] || echo all right"}, "Fail: exit code 1: all right"},
		"no report":                    {diag, map[string]string{"nv-hostengine": engine, "dcgmi": "[ $1 = discovery ] && exit 0; echo no GPU is found; exit 3"}, "Fail: exit code 3: no GPU is found"},
		"a program that is missing":    {health, nil, "Fail: exit code 127: "},
		"a verdict":                    {health, map[string]string{"health-validation": `echo '{"severity": "PASS"}'`}, "Pass: PASS"},
		"a verdict with a code":        {health, map[string]string{"health-validation": `echo '{"severity": "CRITICAL"}'; exit 2`}, "Fail: CRITICAL"},
		"a program of another name":    {v1alpha1.ProbeSpec{Kind: v1alpha1.ProbeHealthValidation, Command: []string{"hv", "a b"}}, map[string]string{"hv": `[ "$1" = "a b" ] && echo '{"severity": "INFO"}'`}, "Pass: INFO"},
		"nvidia-smi lists":             {v1alpha1.ProbeSpec{Kind: v1alpha1.ProbeNvidiaSMI}, map[string]string{"nvidia-smi": "echo 'GPU 0: NVIDIA H100 (UUID: GPU-1)'"}, "Pass: 1 GPUs, 0 MIG instances"},
		"nvidia-smi finds no driver":   {v1alpha1.ProbeSpec{Kind: v1alpha1.ProbeNvidiaSMI}, map[string]string{"nvidia-smi": "echo no driver; exit 9"}, "Fail: exit code 1: no driver"},
		"the engine of DCGM has ended": {diag, map[string]string{"nv-hostengine": "echo in use >nv-hostengine.log; exit 1"}, "Fail: exit code 1: in use"},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := probe.Input{Clock: watched.Clock{Now: time.Now()}, Spec: &tt.spec, IsReady: true, Run: runContainer(t, tt.spec, tt.programs), Expectation: gpus(1)}
			c := probe.Decide(in).Checks[0]
			if got := string(c.Result) + ": " + c.Observed; got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// gpus is the promise of so many GPUs.
func gpus(n int64) v1alpha1.NodeExpectation {
	return v1alpha1.NodeExpectation{Resources: []v1alpha1.ExpectedResource{{Name: "nvidia.com/gpu", Quantity: *resource.NewQuantity(n, resource.DecimalSI)}}}
}
