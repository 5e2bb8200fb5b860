package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// restored is a host whose Machine was Ready with attempt 2 when the backup was made, restored without status.
func restored(changes ...func(*RestoredClaim)) RestoredClaim {
	old := v1alpha1.MachineReference{Namespace: "team", Name: "one", UID: "old"}
	c := RestoredClaim{
		Now: time.Unix(1000, 0), Timeouts: DefaultTimeouts(), ClaimUID: "old", OwnsRecord: true, Provider: Provider{Found: true, HasRecords: true},
		Machine: Machine{Namespace: "team", Name: "one", UID: "new", Finalizer: true, Spec: v1alpha1.MachineSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"},
		}},
		Host: Host{Namespace: "metal", Name: "server", Online: true, ImageURL: "http://127.0.0.1/image", Record: &HostRecord{
			Spec: v1alpha1.HostRecordSpec{Machine: &old, Tenant: "team/research", Revision: "rev-1", Attempt: 2},
		}},
		Installation: &v1alpha1.Installation{
			Machine: old, Tenant: "team/research", NodeType: "h100", State: v1alpha1.InstallationComplete, Revision: "rev-1", Rendering: "ren-1", Attempt: 2, SystemUUID: "dmi",
		},
		Tenant: Tenant{Found: true, Reachable: true}, Node: Node{Found: true, ProviderID: v1alpha1.ProviderID("old", 2)},
	}
	for _, change := range changes {
		change(&c)
	}
	return c
}

// keptStatus is the status of the backup.
func keptStatus(phase v1alpha1.MachinePhase) func(*RestoredClaim) {
	return func(c *RestoredClaim) {
		c.Machine.Status = v1alpha1.MachineStatus{Phase: phase, Attempt: 2, Revision: "rev-1", Rendering: "ren-1", HostRef: &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server"}}
	}
}

func requested(c *RestoredClaim) { c.Installation.State = v1alpha1.InstallationRequested }
func releasing(c *RestoredClaim) { c.Installation.State = v1alpha1.InstallationReleasing }
func deleted(c *RestoredClaim)   { c.Machine.Deleting = true }
func lostRecord(c *RestoredClaim) {
	c.Host.Record = &HostRecord{}
}
func hostOff(c *RestoredClaim) { c.Host.Online = false }

func takenOver(c *RestoredClaim) { c.Machine.Status.InstallationUID = "old" }

func TestAMachineFindsItsRestoredHostOnlyWhereEverythingAgrees(t *testing.T) {
	ready, provisioning := keptStatus(v1alpha1.MachineReady), keptStatus(v1alpha1.MachineProvisioning)
	for _, c := range []struct {
		name  string
		claim RestoredClaim
		kind  RestoreActionKind
		phase v1alpha1.MachinePhase
		says  string
	}{
		{"a node that runs, without status", restored(), TakeOver, v1alpha1.MachineJoining, ""},
		{"and with it", restored(ready), TakeOver, v1alpha1.MachineReady, ""},
		{"the host is known after the status is written", restored(ready, takenOver), ConfirmHost, "", ""},
		{"a second restore compares again", restored(ready, takenOver, func(c *RestoredClaim) { c.Node.ProviderID = v1alpha1.ProviderID("old", 3) }), ReportUnmatched, "", "backup is older than the Node"},
		{"backup tools drop the finalizer", restored(func(c *RestoredClaim) { c.Machine.Finalizer = false }), FinalizeRestored, "", ""},
		{"an installation goes on", restored(requested, func(c *RestoredClaim) { c.Node = Node{} }), TakeOver, v1alpha1.MachineProvisioning, ""},
		{"an installation that ended meanwhile is proven by the Node", restored(requested), RecordRestored, "", ""},
		{"but not where the status has one that goes on", restored(requested, provisioning), ReportUnmatched, "", "backup is older than the Node"},
		{"a status may be one attempt ahead of the host", restored(requested, provisioning, func(c *RestoredClaim) {
			c.Installation.Attempt, c.Host.Record.Spec.Attempt, c.Node = 1, 2, Node{}
		}), TakeOver, v1alpha1.MachineProvisioning, ""},
		{"a younger Node", restored(func(c *RestoredClaim) { c.Node.ProviderID = v1alpha1.ProviderID("old", 3) }), ReportUnmatched, "", "runs attempt 3"},
		{"a Node of somebody else proves nothing", restored(func(c *RestoredClaim) { c.Node.ProviderID = v1alpha1.ProviderID("another", 3) }), TakeOver, v1alpha1.MachineJoining, ""},
		{"a tenant that does not answer", restored(func(c *RestoredClaim) { c.Tenant = Tenant{Message: "no answer"} }), AwaitRestored, "", "no answer"},
		{"a HostRecord that is not taken over yet", restored(func(c *RestoredClaim) { c.OwnsRecord = false }), AwaitRestored, "", "HostRecord"},
		{"another tenant", restored(func(c *RestoredClaim) { c.Machine.Spec.TenantClusterRef.Name = "other" }), ReportUnmatched, "", "TenantCluster team/research"},
		{"another NodeType", restored(func(c *RestoredClaim) { c.Machine.Spec.NodeTypeRef.Name = "b200" }), ReportUnmatched, "", "NodeType h100"},
		{"another Machine in the annotation", restored(func(c *RestoredClaim) { c.Installation.Machine.Name = "two" }), ReportUnmatched, "", "Machine team/two"},
		{"another claim", restored(func(c *RestoredClaim) { c.ClaimUID = "third" }), ReportUnmatched, "", "uid third"},
		{"two hosts", restored(func(c *RestoredClaim) { c.OtherHosts = []string{"metal/other"} }), ReportUnmatched, "", "metal/other"},
		{"no annotation", restored(func(c *RestoredClaim) { c.Installation = nil }), ReportUnmatched, "", v1alpha1.AnnotationInstallation},
		{"no annotation and no image", restored(func(c *RestoredClaim) { c.Installation, c.Host.ImageURL = nil, "" }), ReportUnmatched, "", "before the installation was requested"},
		{"an annotation that cannot be read", restored(func(c *RestoredClaim) { c.Installation, c.InstallationProblem = nil, "no JSON" }), ReportUnmatched, "", "no JSON"},
		{"a claim for which nothing was begun", restored(func(c *RestoredClaim) {
			c.Installation, c.Host.ImageURL, c.Host.Record.Spec = nil, "", v1alpha1.HostRecordSpec{}
		}), LeaveRestored, "", ""},
		{"no NodeProvider", restored(func(c *RestoredClaim) { c.Provider = Provider{} }), AwaitRestored, "", "no NodeProvider"},
		{"a HostRecord that is not made again yet", restored(lostRecord, func(c *RestoredClaim) { c.Host.Record, c.OwnsRecord = nil, false }), AwaitRestored, "", "HostRecord"},
		{"an empty HostRecord", restored(lostRecord), RebuildRecord, "", ""},
		{"with the status of the backup too", restored(lostRecord, ready), RebuildRecord, "", ""},
		{"a lost HostRecord and a lost revision", restored(lostRecord, func(c *RestoredClaim) { c.Revision.Problem = "it does not exist" }), AwaitRestored, "", "it does not exist"},
		{"a lost HostRecord and a younger Node", restored(lostRecord, func(c *RestoredClaim) { c.Node.ProviderID = v1alpha1.ProviderID("old", 3) }), ReportUnmatched, "", "runs attempt 3"},
		{"a lost HostRecord of an installation that goes on", restored(lostRecord, requested, func(c *RestoredClaim) { c.Node = Node{} }), ReportUnmatched, "", "HostRecord is missing or empty"},
		{"of a release", restored(lostRecord, releasing, deleted), ReportUnmatched, "", "HostRecord is missing or empty"},
		{"of a roll that had asked for the next attempt", restored(lostRecord, provisioning, func(c *RestoredClaim) { c.Machine.Status.Attempt = 3 }), ReportUnmatched, "", "HostRecord is missing or empty"},
		{"a HostRecord of another attempt", restored(func(c *RestoredClaim) { c.Host.Record.Spec.Attempt = 3 }), ReportUnmatched, "", "asks for attempt 3"},
		{"a status with another host", restored(ready, func(c *RestoredClaim) { c.Machine.Status.HostRef.Name = "other" }), ReportUnmatched, "", "another host"},
		{"a status of another attempt", restored(ready, func(c *RestoredClaim) { c.Machine.Status.Attempt = 1 }), ReportUnmatched, "", "attempt 1"},
		{"a status of another revision", restored(ready, func(c *RestoredClaim) { c.Machine.Status.Revision = "rev-0" }), ReportUnmatched, "", "rev-0"},
		{"a release that had begun", restored(releasing, hostOff), ReportUnmatched, "", "delete the Machine again"},
		{"by its status", restored(keptStatus(v1alpha1.MachineReleasing)), ReportUnmatched, "", "delete the Machine again"},
		{"and goes on when the Machine is deleted", restored(releasing, hostOff, deleted), TakeOver, v1alpha1.MachineReleasing, ""},
		{"though the tenant does not answer", restored(releasing, deleted, func(c *RestoredClaim) { c.Tenant.Reachable = false }), TakeOver, v1alpha1.MachineReleasing, ""},
		{"a deletion that the backup does not have", restored(ready, deleted), ReportUnmatched, "", "is being deleted and was not"},
		{"a server that Ingot powered off for a reason that is lost", restored(hostOff), ReportUnmatched, "", "nothing says why"},
		{"one that is to be off", restored(hostOff, func(c *RestoredClaim) { c.Machine.Spec.PowerOff = true }), TakeOver, v1alpha1.MachineJoining, ""},
		{"one that is rolled", restored(hostOff, func(c *RestoredClaim) { c.Machine.Spec.Revision = "rev-2" }), TakeOver, v1alpha1.MachineJoining, ""},
	} {
		a := PlanRestore(c.claim)
		if a.Kind != c.kind || !strings.Contains(a.Message, c.says) || c.kind == TakeOver && a.Status.Phase != c.phase {
			t.Errorf("%s: %s, phase %q, %q; want %s, %q, %q", c.name, a.Kind, a.Status.Phase, a.Message, c.kind, c.phase, c.says)
		}
		if s := a.Status; c.kind == TakeOver && (s.InstallationUID != "old" || s.HostRef == nil || s.HostRef.Name != "server" || s.Attempt != 2 && c.phase != v1alpha1.MachineProvisioning || s.Revision != "rev-1" || s.Rendering != "ren-1") {
			t.Errorf("%s: status %+v", c.name, s)
		}
		if c.kind == ReportUnmatched || c.kind == AwaitRestored {
			s := c.claim.Unmatched(a)
			if len(s.Conditions) != 2 || s.Conditions[0].Type != v1alpha1.ConditionClaimed || !strings.Contains(s.Conditions[0].Message, c.says) || s.Conditions[1].Status != "False" {
				t.Errorf("%s: conditions %+v", c.name, s.Conditions)
			}
		}
	}
}

func TestALostHostRecordIsMadeAgainAsItWas(t *testing.T) {
	c := restored(lostRecord, func(c *RestoredClaim) {
		c.Tenant.ClusterUID, c.Provider.Erase = "cluster", v1alpha1.EraseFull
		c.Revision.Image = v1alpha1.ExactImage{URL: "http://127.0.0.1/image", Checksum: "sha256:1"}
	})
	spec := PlanRestore(c).Record
	if spec.Machine == nil || *spec.Machine != c.Installation.Machine || spec.Tenant != "team/research" || spec.TenantClusterUID != "cluster" || spec.Attempt != 2 ||
		spec.Revision != "rev-1" || spec.Image == nil || spec.Image.Checksum != "sha256:1" || spec.Erase != v1alpha1.EraseFull {
		t.Errorf("%+v", spec)
	}
	// The tenant's kubeconfig may name another cluster by now. Without its Node nothing proves that the server joined that one.
	c.Node = Node{}
	if spec = PlanRestore(c).Record; spec.TenantClusterUID != "" || spec.Attempt != 2 {
		t.Errorf("without a Node: %+v", spec)
	}
}
