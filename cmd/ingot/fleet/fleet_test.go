package fleet

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// machine that entered its phase so many minutes ago, with so many left until its deadline; 0: none.
func machine(name string, phase v1alpha1.MachinePhase, since, left int, ready metav1.Condition) v1alpha1.Machine {
	m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name}, Spec: v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}}}
	m.Status.Phase = phase
	m.Status.Timeline = []v1alpha1.PhaseEntry{{Phase: phase, At: metav1.NewMicroTime(noon.Add(-time.Duration(since) * time.Minute))}}
	if left != 0 {
		at := metav1.NewMicroTime(noon.Add(time.Duration(left) * time.Minute))
		m.Status.Deadline = &at
	}
	ready.Type = v1alpha1.ConditionReady
	m.Status.Conditions = []metav1.Condition{ready}
	return m
}

func isReady() metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}
}

func isNot(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func TestMachinesThatNeedALookComeFirst(t *testing.T) {
	rows := MachineRows([]v1alpha1.Machine{
		machine("b-ready", v1alpha1.MachineReady, 500, 0, isReady()),
		machine("a-ready", v1alpha1.MachineReady, 100, 0, isReady()),
		machine("young", v1alpha1.MachineJoining, 2, 10, isNot(v1alpha1.ReasonWaitingForNode, "")),
		machine("old", v1alpha1.MachinePending, 50, 0, isNot(v1alpha1.ReasonNoHostAvailable, "")),
		machine("late", v1alpha1.MachineProvisioning, 70, -10, isNot(v1alpha1.ReasonProvisioningTimedOut, "")),
	}, nil, nil, noon)
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
	}
	if got := strings.Join(names, " "); got != "late old young a-ready b-ready" {
		t.Errorf("order %s", got)
	}
	table := machineTable(rows, noon)
	if got := strings.Join(table[1], "|"); got != "research|late|h100|Provisioning|-|70m|10m over|ProvisioningTimedOut: " {
		t.Errorf("line %q", got)
	}
	if got := table[3]; got[5] != "2m" && got[5] != "2m0s" || got[6] != "in 10m" {
		t.Errorf("line %q", got)
	}
}

func TestAReadyMachineWhoseHostIsInErrorNeedsALook(t *testing.T) {
	m := machine("z-ready", v1alpha1.MachineReady, 5, 0, isReady())
	m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-04"}
	host := placement.HostFacts{Host: &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "server-04"}}}
	for message, next := range map[string]string{
		"BMCUnauthorized: 401":       "correct the Secret of server-04's BMC",
		"disk 3 answers to no probe": "mend what the host reports, then ask for another try: kubectl annotate --overwrite bmh -n metal server-04",
	} {
		host.Host.Status.ErrorType, host.Host.Status.ErrorMessage = metal3.ProvisionedRegistrationError, message
		if got := Diagnose(&m, &host, nil, noon).Next; !strings.Contains(got, next) {
			t.Errorf("%s: next is %q, expected %q", message, got, next)
		}
		rows := MachineRows([]v1alpha1.Machine{machine("a-ready", v1alpha1.MachineReady, 5, 0, isReady()), m}, []placement.HostFacts{host}, nil, noon)
		if line := strings.Join(machineTable(rows, noon)[1], "|"); !strings.HasPrefix(line, "research|z-ready|") || !strings.HasSuffix(line, "|its host is in error: provisioned registration error: "+message) {
			t.Errorf("%s: first line %q", message, line)
		}
	}
}

func TestWhyGoesFromTheConditionOverTheCheckToTheHostAndTheNextStep(t *testing.T) {
	m := machine("training-x", v1alpha1.MachineValidating, 6, 9, isNot(v1alpha1.ReasonResourcesMissing, "7 of 8"))
	m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-04"}
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionValidated, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonResourcesMissing, Message: "a GPU is missing"})
	m.Status.Verdict = &v1alpha1.Verdict{Result: v1alpha1.CheckFail, Checks: []v1alpha1.Check{
		{Name: "node/ready", Result: v1alpha1.CheckPass},
		{Name: "resource/nvidia.com/gpu", Result: v1alpha1.CheckFail, Expected: "8", Observed: "7", Hint: "nvidia-smi -L on the node"},
	}}
	host := &placement.HostFacts{
		Host:   &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "server-04"}},
		Record: &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{Wanted: &v1alpha1.WantedAttempt{Number: 2, Operation: "Install", Outcome: "Succeeded"}}},
	}
	text := Diagnose(&m, host, &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "h100-2"}, Status: v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutStopped, StoppedBy: "the canary"}}, noon).text()
	rest := text
	for _, want := range []string{
		"research/training-x is Validating for 6m, and not Ready: ResourcesMissing; deadline in 9m", "Validated=False ResourcesMissing: a GPU is missing",
		"resource/nvidia.com/gpu: Fail, expected 8, observed 7", "host       metal/server-04", "attempt    2: Install Succeeded",
		"rollout    h100-2: Stopped, 0 of 0 done; stopped by the canary", "next       nvidia-smi -L on the node",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is missing, or out of order, in\n%s", want, text)
		}
		rest = after
	}
	if strings.Contains(text, "node/ready") {
		t.Error("a check that passes is shown")
	}
}

func TestWhyShowsTheStepItsDeadlinesAndTheCallThatFails(t *testing.T) {
	at := func(ago time.Duration) *metav1.MicroTime { at := metav1.NewMicroTime(noon.Add(-ago)); return &at }
	m := machine("training-x", v1alpha1.MachineProvisioning, 6, 9, isNot(v1alpha1.ReasonBMCConflict, "host server-04: BMCConflict: HTTP 412"))
	m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-04"}
	host := &placement.HostFacts{
		Host: &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "server-04"}},
		Record: &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{
			Wanted:       &v1alpha1.WantedAttempt{Number: 2, Operation: "Install", Deadline: *at(-42 * time.Minute)},
			Attempt:      &v1alpha1.HostAttempt{Number: 2, State: "Running", Step: "Booting", StepAt: at(3 * time.Minute), StepDeadline: at(-17 * time.Minute)},
			FailingCalls: []v1alpha1.FailingCall{{Call: v1alpha1.CallInstall, Reason: v1alpha1.ReasonBMCConflict, Message: "HTTP 412: ETag", Since: *at(90 * time.Second)}},
		}},
	}
	w := Diagnose(&m, host, nil, noon)
	for _, want := range []string{
		"  failing    Install for 90s, BMCConflict: HTTP 412: ETag\n",
		"  attempt    2: Install Running at Booting for 3m; this step ends by " + clockTime(noon.Add(17*time.Minute)) + "; the attempt ends by " + clockTime(noon.Add(42*time.Minute)) + "\n",
		"  next       look at the BIOS settings and pending jobs in server-04's BMC",
	} {
		if !strings.Contains(w.text(), want) {
			t.Errorf("%q is missing in\n%s", want, w.text())
		}
	}
}

func TestWhySaysWhatToDoAboutAHostThatNoMachineHas(t *testing.T) {
	host := placement.HostFacts{
		Host: &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "server-04"}},
		Record: &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{Wanted: &v1alpha1.WantedAttempt{
			Number: 4, Operation: "Inspect", Inspector: v1alpha1.SourceAgent, Outcome: v1alpha1.AttemptFailed, Step: "Booting", Reason: "NoBootRequest", Message: "the cable",
		}}},
	}
	host.Host.Status.Provisioning.State = metal3.StateInspecting
	host.Host.Status.ErrorType, host.Host.Status.ErrorMessage = metal3.InspectionError, "NoBootRequest: attempt 4 failed"
	text := DiagnoseHost(host, nil, noon).text()
	for _, want := range []string{
		"host metal/server-04 is inspecting, and no Machine has it\n", "  attempt    4: Inspect Failed at Booting; NoBootRequest: the cable\n", "  log        ingot why --log metal/server-04\n",
		"  next       mend what the host reports, then ask for another try: kubectl annotate --overwrite bmh -n metal server-04 ingot.dev/retry=",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	host.Host.Status.ErrorMessage = v1alpha1.ReasonServerIsOn + ": the server is on"
	if next := DiagnoseHost(host, nil, noon).Next; !strings.HasPrefix(next, "see what runs on server-04, and power it off") {
		t.Errorf("next is %q", next)
	}
}

func TestWhyShowsWhatAnEraseHasDoneToEachDisk(t *testing.T) {
	m := machine("one", v1alpha1.MachineProvisioning, 60, 0, isNot(v1alpha1.ReasonEraseFailed, "host server-04: a disk failed"))
	host := placement.HostFacts{Host: &metal3.BareMetalHost{}, Record: &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{
		Wanted: &v1alpha1.WantedAttempt{Number: 3, Operation: "Erase"},
		Attempt: &v1alpha1.HostAttempt{Number: 3, Channel: "Network", TPM: &v1alpha1.HostTPM{Proof: "None"}, Disks: []v1alpha1.DiskEvidence{
			{DiskInventory: v1alpha1.DiskInventory{Name: "/dev/sda", SizeBytes: 512}, Method: v1alpha1.DiskMethodSecureErase, Result: v1alpha1.DiskErased, Message: "verified: x"},
			{DiskInventory: v1alpha1.DiskInventory{Name: "/dev/sdb", SizeBytes: 512}, Result: v1alpha1.DiskEraseFailed, Message: "no power"},
		}},
	}}}
	text := Diagnose(&m, &host, nil, noon).text()
	for _, want := range []string{
		"  disk       /dev/sda (512 bytes): Erased by SecureErase; verified: x\n", "  disk       /dev/sdb (512 bytes): Failed; no power\n",
		"  channel    Network without a TPM: a neighbour on the provisioning network can report in the server's place\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
}

func TestWhyShowsWhatTheBootServiceNoticed(t *testing.T) {
	m := machine("one", v1alpha1.MachineProvisioning, 60, 0, isNot(v1alpha1.ReasonProvisioning, "host server-04 is prepared"))
	host := placement.HostFacts{Host: &metal3.BareMetalHost{}, Record: &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{
		Wanted: &v1alpha1.WantedAttempt{Number: 3, Operation: "Install"},
		Attempt: &v1alpha1.HostAttempt{Number: 3, Step: "Writing", Findings: []v1alpha1.HostFinding{{
			Reason: v1alpha1.FindingAnotherAgent, Message: "an agent at 10.0.0.7, and another program at 10.0.0.9", Count: 2, At: metav1.NewMicroTime(noon.Add(-time.Minute)),
		}}},
	}}}
	text := Diagnose(&m, &host, nil, noon).text()
	if want := "  noticed    AnotherAgent, last 60s ago: an agent at 10.0.0.7, and another program at 10.0.0.9\n"; !strings.Contains(text, want) {
		t.Errorf("expected %q in\n%s", want, text)
	}
}

func TestWhyIsAboutTheServerWhileItIsOffAndNotAboutItsKubelet(t *testing.T) {
	m := machine("training-x", v1alpha1.MachineValidating, 6, 9, isNot(v1alpha1.ReasonServerOff, "the server of host metal/server-04 is off: its BMC says so since 11:59"))
	m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-04"}
	m.Status.Verdict = &v1alpha1.Verdict{Result: v1alpha1.CheckWait, Checks: []v1alpha1.Check{
		{Name: "node/ready", Result: v1alpha1.CheckWait, Expected: "True", Observed: "Unknown", Hint: "Kubelet stopped posting node status."},
	}}
	w := Diagnose(&m, nil, nil, noon)
	if !strings.Contains(w.text(), "Ready=False ServerOff: the server of host metal/server-04 is off") || !strings.Contains(w.Next, "power supplies of server-04") {
		t.Errorf("next is %q in\n%s", w.Next, w.text())
	}
	off := machine("training-x", v1alpha1.MachineDraining, 6, 0, isNot(v1alpha1.ReasonPoweredOff, "off"))
	if next := Diagnose(&off, nil, nil, noon).Next; !strings.HasSuffix(next, "ingot drain -n research training-x --undo") {
		t.Errorf("next of a server that is off for work is %q", next)
	}
}

func TestEveryReasonThatNeedsAPersonHasAStep(t *testing.T) {
	for reason := range nextSteps {
		m := machine("x", v1alpha1.MachineProvisioning, 1, 1, isNot(reason, "m"))
		m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-04"}
		if next := Diagnose(&m, nil, nil, noon).Next; next == "" || strings.Contains(next, "HOST") || strings.Contains(next, "MACHINE") {
			t.Errorf("%s: next is %q", reason, next)
		}
	}
	ready := machine("x", v1alpha1.MachineReady, 1, 0, isReady())
	if w := Diagnose(&ready, nil, nil, noon); w.Next != "" || !strings.Contains(w.Summary, "is Ready") {
		t.Errorf("%+v", w)
	}
	unseen := machine("x", v1alpha1.MachineReady, 1, 0, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWaitingForTenant, Message: "m"})
	unseen.Status.WaitingFor = "the API server of TenantCluster research/x"
	if w := Diagnose(&unseen, nil, nil, noon); !strings.Contains(w.Summary, "was Ready when it was last seen") || !strings.Contains(w.Summary, "waits for the API server of TenantCluster research/x") || !strings.Contains(w.Next, "kubectl describe tenantcluster") {
		t.Errorf("%+v", w)
	}
	fresh := v1alpha1.Machine{}
	if w := Diagnose(&fresh, nil, nil, noon); !strings.Contains(w.Next, "ingot-manager") {
		t.Errorf("%+v", w)
	}
}

func TestHostsAreFreeClaimedBusyOrInErrorAndSayWhatTheyFit(t *testing.T) {
	host := func(name, state string, change func(*metal3.BareMetalHost)) placement.HostFacts {
		h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: name, Labels: map[string]string{"gpu": "h100"}}}
		h.Status.Provisioning.State = metal3.ProvisioningState(state)
		if change != nil {
			change(h)
		}
		return placement.HostFacts{Host: h, Record: &v1alpha1.HostRecord{}}
	}
	nodeType := v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: "h100"}, Spec: v1alpha1.NodeTypeSpec{
		ProviderRef: v1alpha1.LocalReference{Name: "hall"}, HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "h100"}},
	}}
	provider := v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: "hall"}, Spec: v1alpha1.NodeProviderSpec{HostNamespace: "metal"}}
	rows := HostRows([]placement.HostFacts{
		host("d", "inspecting", nil),
		host("c", "available", func(h *metal3.BareMetalHost) {
			h.Status.ErrorType, h.Status.ErrorMessage = metal3.InspectionError, "BMCUnauthorized: 401"
		}),
		host("b", "provisioned", func(h *metal3.BareMetalHost) {
			h.Spec.ConsumerRef = &corev1.ObjectReference{Namespace: "research", Name: "training-x"}
		}),
		host("a", "available", func(h *metal3.BareMetalHost) { h.Labels = nil }),
	}, []v1alpha1.NodeType{nodeType}, []v1alpha1.NodeProvider{provider}, nil)
	for i, want := range []string{"a free none: h100: has no label gpu", "b claimed h100", "c error h100", "d busy h100"} {
		if got := rows[i].Name + " " + rows[i].Use + " " + rows[i].Fits; !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if rows[1].Claimed != "research/training-x" || len(rows[0].NodeTypes) != 0 || rows[2].Error != "inspection error: BMCUnauthorized: 401" {
		t.Errorf("%+v", rows)
	}
}

func TestAMachineOfANodePoolThatHasNoHostIsToldToScaleThePool(t *testing.T) {
	m := machine("training-x", v1alpha1.MachinePending, 50, 0, isNot(v1alpha1.ReasonNoHostAvailable, ""))
	if next := Diagnose(&m, nil, nil, noon).Next; strings.Contains(next, "scale") {
		t.Errorf("a Machine that a person made: %s", next)
	}
	controller := true
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodePool", Name: "training", Controller: &controller}}
	if next := Diagnose(&m, nil, nil, noon).Next; !strings.Contains(next, "kubectl scale nodepool -n research training --replicas=N") {
		t.Errorf("a Machine of a NodePool: %s", next)
	}
}

func TestWhyShowsEachConditionOfAMachineThatIsNotTrue(t *testing.T) {
	m := machine("a", v1alpha1.MachineReady, 1, 0, isReady())
	conditions := []string{
		v1alpha1.ConditionClaimed, v1alpha1.ConditionProvisioned, v1alpha1.ConditionJoined, v1alpha1.ConditionValidated, v1alpha1.ConditionUpToDate,
		v1alpha1.ConditionNodeMetadataKept,
	}
	for _, name := range conditions {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionFalse, Reason: "Why" + name, Message: "seen"})
	}
	text := Diagnose(&m, nil, nil, noon).text()
	for _, name := range conditions {
		if !strings.Contains(text, name+"=False Why"+name+": seen") {
			t.Errorf("%s is not shown:\n%s", name, text)
		}
	}
}
