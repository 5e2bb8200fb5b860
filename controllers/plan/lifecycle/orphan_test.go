package lifecycle

import (
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// orphan is a provisioned host whose Machine m1 is gone.
func orphan(changes ...func(*Claim)) Claim {
	c := Claim{Now: time.Unix(1000, 0), MachineUID: "m1", Host: Host{
		State: metal3.StateProvisioned, ImageURL: "http://127.0.0.1/image", Online: true,
		Record: &HostRecord{Spec: v1alpha1.HostRecordSpec{Machine: &v1alpha1.MachineReference{Namespace: "team", Name: "one", UID: "m1"}, Erase: v1alpha1.EraseFull}},
	}}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func reported(uid, other types.UID) func(*Claim) {
	return func(c *Claim) {
		c.Host.Record.Spec.MachineGone = &v1alpha1.MachineGone{UID: uid, OtherUID: other, Since: metav1.NewMicroTime(time.Unix(500, 0))}
	}
}

func namesake(uid types.UID) func(*Claim) { return func(c *Claim) { c.NamesakeUID = uid } }

func releasedAs(value string) func(*Claim) { return func(c *Claim) { c.Release = value } }

func deprovisioned(c *Claim) { c.Host.ImageURL, c.Host.Online = "", false }

// askedOff has the power-off requested; isOn is what the status says of it.
func askedOff(isOn bool) func(*Claim) {
	return func(c *Claim) {
		c.Host.Online, c.Host.PowerOffRequested, c.Host.PowerOffOfRunning, c.Host.PoweredOn = false, true, true, isOn
	}
}

func inThePool(c *Claim) { deprovisioned(c); c.Host.State = metal3.StateAvailable }

func secret1(c *Claim) { c.HasSecret = true }

func twice(c *Claim) { c.SameServer = "BareMetalHost hall-2/b has the same BMC" }

func cleared(c *Claim) { c.Host.Record.Spec = v1alpha1.HostRecordSpec{} }

func withoutRecord(c *Claim) { c.Host.Record = nil }

func TestWhatIsDoneWithAHostWhoseMachineIsGone(t *testing.T) {
	asked := releasedAs("m1")
	for _, c := range []struct {
		name  string
		claim Claim
		want  OrphanActionKind
	}{
		{"its Machine exists", orphan(namesake("m1")), LeaveClaim},
		{"its Machine is there again", orphan(namesake("m1"), reported("m1", "")), WriteClaimRecord},
		{"its Machine is gone", orphan(), WriteClaimRecord},
		{"that is reported", orphan(reported("m1", "")), LeaveClaim},
		{"an earlier claim was reported", orphan(reported("m0", "")), WriteClaimRecord},
		{"a Machine of the name was made since", orphan(reported("m1", ""), namesake("m2")), WriteClaimRecord},
		{"that is reported too", orphan(reported("m1", "m2"), namesake("m2")), LeaveClaim},
		{"the release names another Machine", orphan(reported("m1", ""), releasedAs("m0")), LeaveClaim},
		{"the release names the Machine that exists", orphan(namesake("m1"), asked), LeaveClaim},
		{"the release is requested", orphan(reported("m1", ""), asked), DeprovisionOrphan},
		{"it is powered off and erased", orphan(reported("m1", ""), asked, deprovisioned), LeaveClaim},
		{"it is erased, and the claim Secret is there", orphan(reported("m1", ""), asked, inThePool, secret1), DeleteOrphanSecret},
		{"it is erased, and the HostRecord has the Machine", orphan(reported("m1", ""), asked, inThePool), WriteClaimRecord},
		{"its HostRecord is empty", orphan(asked, inThePool, cleared), FreeOrphan},
		{"the claim came after its Machine was deleted", orphan(inThePool, cleared), FreeOrphan},
		{"without a HostRecord nothing is reported", orphan(withoutRecord), LeaveClaim},
		{"without a HostRecord its server is powered off first", orphan(withoutRecord, asked), PowerOffOrphan},
		{"without a HostRecord, the power-off requested", orphan(withoutRecord, asked, askedOff(true)), LeaveClaim},
		{"without a HostRecord, the power-off of somebody else", orphan(withoutRecord, asked, askedOff(false), func(c *Claim) { c.Host.PowerOffRequested, c.Host.PowerOffOfRunning = false, false }), PowerOffOrphan},
		{"without a HostRecord, while a person reboots it", orphan(withoutRecord, asked, askedOff(true), func(c *Claim) { c.Host.PowerOffRequested, c.Host.RebootRequested = false, true }), LeaveClaim},
		{"without a HostRecord, the power-off confirmed", orphan(withoutRecord, asked, askedOff(false)), DeprovisionOrphan},
		{"without a HostRecord, while it is installed", orphan(withoutRecord, asked, func(c *Claim) { c.Host.State = metal3.StateProvisioning }), DeprovisionOrphan},
		{"without a HostRecord, erased", orphan(withoutRecord, asked, inThePool, secret1), DeleteOrphanSecret},
		{"without a HostRecord, nothing requested, and a Secret is there", orphan(withoutRecord, inThePool, secret1), DeleteOrphanSecret},
		{"without a HostRecord, its Secret deleted", orphan(withoutRecord, asked, inThePool), FreeOrphan},
		{"its release, while another host is the server", orphan(reported("m1", ""), asked, twice), AwaitOneHost},
		{"that release, and nothing is reported", orphan(asked, twice), WriteClaimRecord},
		{"that release without a HostRecord", orphan(withoutRecord, asked, twice), AwaitOneHost},
		{"that release without an image, and the server on", orphan(withoutRecord, asked, twice, func(c *Claim) { c.Host.ImageURL = "" }), AwaitOneHost},
		{"another host is the server, and no release is asked for", orphan(reported("m1", ""), twice), LeaveClaim},
		{"another host is the server after the erase", orphan(withoutRecord, asked, inThePool, twice), FreeOrphan},
		{"a consumerRef without a uid", orphan(func(c *Claim) { c.MachineUID = "" }), WriteClaimRecord},
		{"its release", orphan(func(c *Claim) { c.MachineUID = "" }, releasedAs("none")), DeprovisionOrphan},
	} {
		if got := PlanOrphan(c.claim); got.Kind != c.want {
			t.Errorf("%s: %q, want %q", c.name, got.Kind, c.want)
		}
	}
}

func TestTheReportAboutAGoneMachineKeepsTheRestOfTheHostRecord(t *testing.T) {
	first := PlanOrphan(orphan()).Record
	if g := first.MachineGone; first.Erase != v1alpha1.EraseFull || first.Machine == nil || g == nil || g.UID != "m1" || !g.Since.Equal(&metav1.MicroTime{Time: time.Unix(1000, 0)}) {
		t.Errorf("the first report: %+v", first)
	}
	second := PlanOrphan(orphan(reported("m1", ""), namesake("m2"))).Record
	if g := second.MachineGone; g.OtherUID != "m2" || !g.Since.Equal(&metav1.MicroTime{Time: time.Unix(500, 0)}) {
		t.Errorf("a Machine of its name was made: %+v", g)
	}
	if r := PlanOrphan(orphan(namesake("m1"), reported("m1", ""))).Record; r.MachineGone != nil || r.Erase != v1alpha1.EraseFull {
		t.Errorf("its Machine is there again: %+v", r)
	}
	if r := PlanOrphan(orphan(inThePool)).Record; r.MachineGone == nil || r.Machine == nil {
		t.Errorf("a claim whose installation was never requested is cleared before anybody asks for its release: %+v", r)
	}
}

func TestTheReleaseOfAnOrphanLeavesTheNameOfItsNode(t *testing.T) {
	a := PlanOrphan(orphan(reported("m1", ""), releasedAs("m1"), inThePool, func(c *Claim) { c.Host.Record.Spec.Tenant = "team/research" }))
	if nodes := a.Record.RemainingNodes; a.Kind != WriteClaimRecord || len(nodes) != 1 || nodes[0].Name != "one" || nodes[0].MachineUID != "m1" || nodes[0].Tenant != "team/research" {
		t.Errorf("%+v", a)
	}
	served := func(c *Claim) { c.Host.Record, c.LastTenant, c.MachineName = nil, "team/research", "one" }
	installed := func(c *Claim) { c.Host.Installation = &v1alpha1.Installation{} }
	if a := PlanOrphan(orphan(served, releasedAs("m1"), inThePool, installed)); a.Kind != FreeOrphan || a.RemainingNode == nil || a.RemainingNode.Tenant != "team/research" {
		t.Errorf("without a HostRecord: %+v", a)
	}
	if a := PlanOrphan(orphan(served, releasedAs("m1"), inThePool)); a.Kind != FreeOrphan || a.RemainingNode != nil {
		t.Errorf("without a HostRecord, and nothing was installed for the Machine: %+v", a)
	}
}
