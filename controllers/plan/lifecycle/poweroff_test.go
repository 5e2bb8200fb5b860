package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// kept powers the host off as spec.powerOff asks. The BMC has confirmed that, and the status does not say so yet.
func kept(f *Facts) {
	off(f)
	f.Machine.Spec.PowerOff, f.Machine.Status.PowerOffRequestedAt, f.Node = true, nil, ownNode(f)
	f.Machine.Status.PowerOff = &v1alpha1.MachinePowerOff{RequestedAt: metav1.NewMicroTime(f.Now)}
}

// found has the BMC report the power state, two minutes after the installation.
func found(f *Facts, state string) {
	f.Host.Record.Status.Power = &v1alpha1.HostPower{State: state, ObservedGeneration: f.Host.Generation, ObservedAt: metav1.NewMicroTime(f.Now.Add(2 * time.Minute))}
	f.Now = f.Now.Add(3 * time.Minute)
}

// powerSituations are those of testdata/decisions.txt about spec.powerOff and about servers that are off.
var powerSituations = []situation{
	{"a power-off that spec asks for", v1alpha1.MachineReady, func(f *Facts) { f.Machine.Spec.PowerOff = true }},
	{"a power-off that spec asks for", v1alpha1.MachineProvisioning, func(f *Facts) { f.Machine.Spec.PowerOff = true }},
	{"a roll while spec asks for a power-off", v1alpha1.MachineDraining, func(f *Facts) { f.Machine.Spec.PowerOff, f.Node.Unschedulable = true, true }},
	{"a power-off with pods that stay", v1alpha1.MachineDraining, func(f *Facts) {
		late(f)
		f.Machine.Spec.PowerOff, f.Node.Unschedulable, f.Node.Pods = true, true, []string{"team/a"}
	}},
	{"a power-off whose tenant does not answer", v1alpha1.MachineDraining, func(f *Facts) { unreachable(f); f.Machine.Spec.PowerOff = true }},
	{"a power-off that is cleared before it is begun", v1alpha1.MachineDraining, func(f *Facts) { f.NextRevision = Revision{} }},
	{"a power-off that the BMC does not confirm", v1alpha1.MachineDraining, func(f *Facts) {
		kept(f)
		late(f)
		f.Host.Record.Status.Power.State, f.Host.Error, f.Host.ErrorReason = "Unknown", "power management error", "BMCUnreachable"
	}},
	{"a power-off that is confirmed just now", v1alpha1.MachineDraining, kept},
	{"a server that is kept off", v1alpha1.MachineDraining, func(f *Facts) {
		kept(f)
		f.Machine.Status.PowerOff.ConfirmedAt = &f.Machine.Status.PowerOff.RequestedAt
	}},
	{"a server that is kept off, and deleted", v1alpha1.MachineDraining, func(f *Facts) { kept(f); f.Machine.Deleting = true }},
	{"a power-off that is cleared", v1alpha1.MachineDraining, func(f *Facts) { kept(f); f.Machine.Spec.PowerOff, f.NextRevision = false, Revision{} }},
	{"a power-off that is cleared, and a roll", v1alpha1.MachineDraining, func(f *Facts) { kept(f); f.Machine.Spec.PowerOff = false }},
	{"a power-off that is cleared, of a Machine that had not joined", v1alpha1.MachineDraining, func(f *Facts) {
		kept(f)
		f.Machine.Spec.PowerOff, f.Machine.Status.NodeRef, f.NextRevision = false, nil, Revision{}
	}},
	{"a server to be powered on again", v1alpha1.MachineValidating, func(f *Facts) { f.Host.Online, f.Machine.Status.PowerOff = false, &v1alpha1.MachinePowerOff{} }},
	{"a boot that ended with a power-off", v1alpha1.MachineValidating, func(f *Facts) {
		judged(f, v1alpha1.CheckPass)
		f.Machine.Status.Verdict.Admitted, f.Node.CordonedByIngot, f.Now = true, true, f.Now.Add(time.Hour)
		now := metav1.NewMicroTime(f.Now)
		f.Machine.Status.PowerOff = &v1alpha1.MachinePowerOff{ConfirmedAt: &now, BootID: f.Node.BootID}
	}},
	{"a boot after a power-off, with Ingot's cordon", v1alpha1.MachineValidating, func(f *Facts) {
		judged(f, v1alpha1.CheckPass)
		f.Machine.Status.Verdict.Admitted, f.Node.CordonedByIngot = true, true
		now := metav1.NewMicroTime(f.Now)
		f.Machine.Status.PowerOff = &v1alpha1.MachinePowerOff{ConfirmedAt: &now, BootID: "the one before"}
	}},
	{"a server that is off", v1alpha1.MachineValidating, func(f *Facts) { found(f, "Off") }},
	{"a server that is off and is being powered on", v1alpha1.MachineReady, func(f *Facts) { found(f, "PoweringOn"); f.Node.BootID = "another" }},
	{"a server that is off and stays so", v1alpha1.MachineJoining, func(f *Facts) {
		found(f, "PoweringOn")
		f.Node, f.Host.Error, f.Host.ErrorReason = Node{}, "power management error", "PowerOnIgnored"
	}},
	{"a server whose power-on was requested a moment ago", v1alpha1.MachineJoining, func(f *Facts) {
		found(f, "PoweringOn")
		f.Node, f.Host.Record.Status.Power.ObservedAt = Node{}, metav1.NewMicroTime(f.Now.Add(-10*time.Second))
	}},
	{"a server that an administrator has powered off", v1alpha1.MachineValidating, func(f *Facts) { found(f, "Off"); f.Host.Online = false }},
	{"a host without a HostRecord that is off", v1alpha1.MachineValidating, func(f *Facts) {
		f.Provider.HasRecords, f.Host.Record, f.Host.PoweredOn = false, nil, false
	}},
}

// TestAHostSetOfflineByHandIsPoweredOnAfterAPowerOffAndItsUndo: only the manager changes spec.online, and a host may have been set to false before.
func TestAHostSetOfflineByHandIsPoweredOnAfterAPowerOffAndItsUndo(t *testing.T) {
	w := readyWorld(t, 0)
	m, h := w.machines[0], w.hosts[0]
	h.live.online = false
	h.live.generation++
	w.sync()
	if readyAfter(w, 20); h.live.online {
		t.Error("a host that somebody may be working on was powered on")
	}
	w.setPowerOff(m, true)
	if reason, message := readyAfter(w, 40); reason != v1alpha1.ReasonPoweredOff {
		t.Fatalf("%s: %s", reason, message)
	}
	w.setPowerOff(m, false)
	if reason, message := readyAfter(w, 60); !h.live.online || m.live.Status.Phase != v1alpha1.MachineReady || m.live.Status.Attempt != 1 {
		t.Errorf("%s, attempt %d, host online %v; %s: %s", m.live.Status.Phase, m.live.Status.Attempt, h.live.online, reason, message)
	}
}
