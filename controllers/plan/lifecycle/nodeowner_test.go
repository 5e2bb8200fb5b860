package lifecycle

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// clusterFacts are those of a Machine in the phase, in a cluster that sets providerIDs itself.
func clusterFacts(t *testing.T, phase v1alpha1.MachinePhase) Facts {
	t.Helper()
	f := factsIn(t, phase)
	f.Tenant.ProviderID, f.Machine.Status.ProviderID = v1alpha1.ProviderIDByCluster, v1alpha1.ProviderIDByCluster
	return f
}

func TestInAClusterThatSetsProviderIDsTheMachineIsBoundToItsOwnNode(t *testing.T) {
	f := clusterFacts(t, v1alpha1.MachineJoining)
	if f.Machine.Status.SystemUUID == "" {
		t.Fatal("at the join the status has no system UUID")
	}
	own := Node{Found: true, UID: "new", ProviderID: "vcluster://m0", SystemUUID: strings.ToUpper(f.Machine.Status.SystemUUID), Installation: v1alpha1.InstallationLabel(f.Machine.UID, f.Machine.Status.Attempt), BootID: "boot"}
	for _, c := range []struct {
		name   string
		change func(*Facts)
		action ActionKind
		phase  v1alpha1.MachinePhase
		reason string
	}{
		{"its own Node", func(*Facts) {}, "", v1alpha1.MachineValidating, ""},
		{"its own Node without a providerID yet", func(f *Facts) { f.Node.ProviderID = "" }, "", v1alpha1.MachineValidating, ""},
		{"one that its server registered before the installation", func(f *Facts) { f.Node.Installation = "another.1" }, DeleteNode, v1alpha1.MachineJoining, ""},
		{"one of another server", func(f *Facts) { f.Node.SystemUUID = "4c4c4544-0042-3010-8053-b8c04f3344ff" }, "", v1alpha1.MachineJoining, v1alpha1.ReasonNodeConflict},
		{"one of another Machine of Ingot's", func(f *Facts) { f.Node.ProviderID = "ingot://another/1" }, "", v1alpha1.MachineJoining, v1alpha1.ReasonNodeConflict},
		{"one that says a UUID that many servers have", func(f *Facts) { f.Node.SystemUUID = "03000200-0400-0500-0006-000700080009" }, "", v1alpha1.MachineJoining, v1alpha1.ReasonServerUnidentified},
		{"a server whose UUID no agent has read", func(f *Facts) { f.Machine.Status.SystemUUID, f.Host.Record.Status.Inventory = "", nil }, "", v1alpha1.MachineJoining, v1alpha1.ReasonServerUnidentified},
		{"one without the label", func(f *Facts) { f.Node.Installation = "" }, "", v1alpha1.MachineJoining, v1alpha1.ReasonNodeConflict},
		{"a Machine that was installed with a providerID", func(f *Facts) { f.Machine.Status.ProviderID = "" }, "", v1alpha1.MachineJoining, v1alpha1.ReasonNodeConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := f
			record := *f.Host.Record
			host := *f.Host
			host.Record = &record
			f.Host, f.Node = &host, own
			f.Host.Installation = scope{Facts: f, guards: realGuards()}.installation(v1alpha1.InstallationComplete)
			c.change(&f)
			d := Plan(f)
			action, reason := ActionKind(""), ""
			if d.Action != nil {
				action = d.Action.Kind
			}
			if joined := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionJoined); joined != nil && c.reason != "" {
				reason = joined.Reason
			}
			if action != c.action || d.Status.Phase != c.phase || reason != c.reason {
				t.Errorf("action %q, phase %s, Joined %q: %s", action, d.Status.Phase, reason, d.Status.WaitingFor)
			}
			if isBound := d.Status.NodeRef != nil && d.Status.NodeRef.UID == "new"; isBound != (c.phase == v1alpha1.MachineValidating) {
				t.Errorf("bound: %t", isBound)
			}
		})
	}
}

func TestANodeThatWasBoundStaysTheMachinesWhateverTheTenantClusterSaysThen(t *testing.T) {
	for _, was := range []v1alpha1.ProviderIDSource{"", v1alpha1.ProviderIDByCluster} {
		f := factsIn(t, v1alpha1.MachineReady)
		f.Machine.Status.ProviderID = was
		if was != "" {
			f.Node.ProviderID, f.Tenant.ProviderID = "vcluster://m0", v1alpha1.ProviderIDByIngot
		} else {
			f.Tenant.ProviderID = v1alpha1.ProviderIDByCluster
		}
		if d := Plan(f); d.Status.Phase != v1alpha1.MachineReady {
			t.Errorf("installed with %q: %s, %s", was, d.Status.Phase, d.Status.WaitingFor)
		}
	}
}

func TestARefusedIdentityDrainsAndInstallsNothing(t *testing.T) {
	for name, spoil := range map[string]func(*Facts){
		"metal3":                     func(f *Facts) { f.Provider.HasRecords = false },
		"a UUID that many have":      func(f *Facts) { f.Host.Record.Status.Inventory.SystemUUID = "03000200-0400-0500-0006-000700080009" },
		"a placeholder of the board": func(f *Facts) { f.Host.Record.Status.Inventory.SystemUUID = "Not Settable" },
	} {
		f := clusterFacts(t, v1alpha1.MachineProvisioning)
		inventory := *f.Host.Record.Status.Inventory
		f.Host.Record.Status.Inventory, f.Host.ImageURL = &inventory, ""
		if reason, _ := revisionProblem(f, f.Revision); reason != "" {
			t.Fatalf("before: %s", reason)
		}
		spoil(&f)
		if reason, message := revisionProblem(f, f.Revision); reason != v1alpha1.ReasonServerUnidentified || !strings.Contains(message, "spec.join.providerID") {
			t.Errorf("%s: %q, %s", name, reason, message)
		}
	}
}
