package probe

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Limits of what is taken from a pod: bytes of a text, and checks of one pod.
const (
	maxText   = 400
	maxName   = 64
	maxChecks = 16
)

// resultChecks returns the checks of a pod that ended, or whose time is over.
func resultChecks(in Input, t Target) []v1alpha1.Check {
	c := v1alpha1.Check{Name: Prefix + t.Name, Result: v1alpha1.CheckFail, Expected: t.text(), Observed: tail(in.Run.Message)}
	switch {
	case !in.Run.isOver():
		c.Observed = strings.TrimSuffix("it did not end within "+Timeout(*in.Spec).String()+": "+input.Line(in.Run.Waiting, maxText), ": ")
		c.Hint = "the pod was not scheduled, its image was not pulled, or its command hangs: kubectl get events -A"
	case in.Run.Phase == corev1.PodFailed:
		c.Observed = fmt.Sprintf("exit code %d: %s", in.Run.ExitCode, tail(in.Run.Message))
		c.Hint = "the pod could not use the devices: run validation.probe's image on the node by hand; the next probe is made in " + RetryInterval.String()
	case in.Spec.Kind == v1alpha1.ProbeCommand:
		if reported := reportedChecks(in.Run.Message, t); len(reported) > 0 {
			return reported
		}
		c.Result = v1alpha1.CheckPass
	case in.Spec.Kind == v1alpha1.ProbeDCGMDiag:
		return diagChecks(c, in.Run.Message)
	case in.Spec.Kind == v1alpha1.ProbeHealthValidation:
		return healthChecks(c, in.Run.Message)
	default:
		return []v1alpha1.Check{listCheck(c, in.Run.Message, t)}
	}
	return []v1alpha1.Check{c}
}

// listCheck compares what nvidia-smi -L lists: "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)", and below it "  MIG 1g.10gb Device 0: (UUID: MIG-...)" for each
// instance.
func listCheck(c v1alpha1.Check, list string, t Target) v1alpha1.Check {
	var gpus, instances int64
	for line := range strings.Lines(list) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "GPU "):
			gpus++
		case strings.HasPrefix(line, "MIG "):
			instances++
		}
	}
	c.Expected = fmt.Sprintf("nvidia-smi -L lists %d GPUs that are not partitioned", t.Count)
	fits := gpus == t.Count && instances == 0
	if t.isInstance {
		c.Expected, fits = fmt.Sprintf("nvidia-smi -L lists %d MIG instances", t.Count), instances == t.Count
	}
	c.Observed = fmt.Sprintf("%d GPUs, %d MIG instances", gpus, instances)
	if fits {
		c.Result = v1alpha1.CheckPass
		return c
	}
	c.Observed += ": " + tail(list)
	c.Hint = "a pod sees other devices than were promised: the container toolkit, CDI, or the MIG mode of a GPU. On the node: nvidia-smi -L"
	return c
}

// reportedChecks returns the checks in the last line of the message, if that is JSON; nil: it is not.
func reportedChecks(message string, t Target) []v1alpha1.Check {
	message = strings.TrimSpace(message)
	var report struct {
		Checks []struct {
			Name    string `json:"name"`
			Result  string `json:"result"`
			Message string `json:"message"`
		} `json:"checks"`
	}
	if json.Unmarshal([]byte(message[strings.LastIndexByte(message, '\n')+1:]), &report) != nil {
		return nil
	}
	var out []v1alpha1.Check
	for i, r := range report.Checks {
		if i == maxChecks {
			return append(out, v1alpha1.Check{
				Name: Prefix + t.Name + "/more", Result: v1alpha1.CheckFail, Expected: fmt.Sprintf("at most %d checks", maxChecks), Observed: fmt.Sprint(len(report.Checks)),
				Hint: "the command of validation.probe reports more checks than a verdict has room for",
			})
		}
		c := v1alpha1.Check{Name: fmt.Sprintf("%s%s/%d-%s", Prefix, t.Name, i+1, input.Line(r.Name, maxName)), Result: v1alpha1.CheckPass, Expected: string(v1alpha1.CheckPass), Observed: input.Line(r.Message, maxText)}
		// Whatever is not a pass is a failure: a probe has ended, and nothing becomes right by waiting.
		if r.Result != string(v1alpha1.CheckPass) {
			c.Result, c.Observed = v1alpha1.CheckFail, input.Line(r.Result+": "+r.Message, maxText)
			c.Hint = "the command of validation.probe reports it; the next probe is made in " + RetryInterval.String()
		}
		out = append(out, c)
	}
	return out
}

// unreadable returns the check of a pod that ended without a report that can be read.
func unreadable(c v1alpha1.Check, program string, err error) []v1alpha1.Check {
	c.Result, c.Observed = v1alpha1.CheckFail, input.Line(err.Error(), maxText)
	c.Hint = "the pod ended without a report of " + program + ": the image needs it, a shell, gzip and base64; the next probe is made in " + RetryInterval.String()
	return []v1alpha1.Check{c}
}

// partName names the check of a part of a report.
func partName(target, part string) string {
	return target + "/" + input.Line(part, maxName)
}

// limited returns as many of the checks as a verdict has room for.
func limited(target string, checks []v1alpha1.Check) []v1alpha1.Check {
	if len(checks) <= maxChecks {
		return checks
	}
	return append(checks[:maxChecks:maxChecks], v1alpha1.Check{
		Name: target + "/more", Result: v1alpha1.CheckFail, Expected: fmt.Sprintf("at most %d failures", maxChecks), Observed: fmt.Sprint(len(checks)),
		Hint: "run the program of validation.probe on the node by hand to see all",
	})
}

// tail returns the end of a text of a pod.
func tail(text string) string {
	text = strings.TrimSpace(text)
	return input.Line(text[max(0, len(text)-maxText):], maxText)
}
