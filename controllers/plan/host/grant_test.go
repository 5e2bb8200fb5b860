package host

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
)

func TestManyHostsOfUnknownContentAreNeitherPoweredOffNorErased(t *testing.T) {
	many := &breaker.Answer{Wait: time.Minute, Cause: &breaker.Cause{Act: breaker.Erase, Domain: breaker.Domain{Kind: "rack", Name: "r1"}, Due: 18, Servers: 18, Limit: 1}}
	for _, c := range []struct {
		about  string
		change func(*Facts)
		acts   bool
		says   string
	}{
		{"it has its grant", func(*Facts) {}, true, ""},
		{"it has not asked yet", func(f *Facts) { f.Grant = nil }, false, ""},
		{"others may follow", func(f *Facts) { f.Grant = &breaker.Answer{Wait: time.Minute} }, false, ""},
		{"it is one of many", func(f *Facts) { f.Grant = many }, false, "18 of the 18 servers of rack r1"},
		{"its record has just been lost", func(f *Facts) { f.Grant, f.Record = nil, v1alpha1.HostRecordStatus{} }, false, ""},
		{"a person asks for the erase", func(f *Facts) { f.Grant, f.Host.Erase = many, string(v1alpha1.EraseFull) }, true, ""},
		{"a person has it released", func(f *Facts) {
			f.Grant, f.Host.Claimed, f.Host.ConsumerUID, f.Host.Release = many, true, "m1", v1alpha1.ReleaseValue("m1")
		}, true, ""},
		{"a person has another claim released", func(f *Facts) {
			f.Grant, f.Host.Claimed, f.Host.ConsumerUID, f.Host.Release = many, true, "m1", v1alpha1.ReleaseValue("m0")
		}, false, ""},
		{"others were erased a moment ago", func(f *Facts) {
			f.Grant = &breaker.Answer{Wait: time.Minute, Cause: &breaker.Cause{Act: breaker.Erase, Domain: breaker.Domain{Kind: "rack", Name: "r1"}, Due: 1, Done: 1, Servers: 18, Limit: 1, Until: noon}}
		}, false, "1 server of rack r1, and 1 such were erased within the hour before: it is powered off and erased at " + noon.Format(time.RFC3339)},
		{"a person deletes the host", func(f *Facts) { f.Grant, f.Host.Deleting = many, true }, true, ""},
		{"its tenant is known", func(f *Facts) { f.Grant, f.Record.LastTenant = many, "team/research" }, true, ""},
		{"its erase was begun", func(f *Facts) {
			*f = f.attempted(4, hardware.OpErase, hardware.AttemptRunning, "")
			f.Grant = many
		}, true, ""},
	} {
		f := facts(metal3.StateDeprovisioning, hardware.PowerOn).with(func(f *Facts) { f.Record.LastTenant = unknownTenant }).with(c.change)
		d := Plan(f)
		if acts := d.Action.Kind != ActionNone; acts != c.acts || !strings.Contains(d.Status.ErrorMessage, c.says) || d.RequeueAfter <= 0 {
			t.Errorf("%s: action %q, error %q, again in %s", c.about, d.Action.Kind, d.Status.ErrorMessage, d.RequeueAfter)
		}
	}
}

func TestAPersonsEraseOfAHostOfUnknownContentIsMadeOnce(t *testing.T) {
	f := facts(metal3.StateDeprovisioning, hardware.PowerOff).with(func(f *Facts) {
		f.Record.LastTenant, f.Host.Erase, f.Grant = unknownTenant, string(v1alpha1.EraseFull), nil
	})
	d := Plan(f)
	if w := d.Record.Wanted; w == nil || w.Erase != v1alpha1.EraseFull {
		t.Fatalf("%+v", d.Record.Wanted)
	}
	f.Record = d.Record
	f = f.attempted(f.Record.Wanted.Number, hardware.OpErase, hardware.AttemptSucceeded, "")
	f.Record.LastTenant = unknownTenant
	if d = Plan(f); d.Status.State != metal3.StateAvailable || len(d.RemoveAnnotations) != 1 {
		t.Errorf("%s, removes %v: %s", d.Status.State, d.RemoveAnnotations, d.Status.ErrorMessage)
	}
}

// TestWhatSomebodyElseInstallsIsLeftToThem has a person say that something runs there that stays, as the message advises.
func TestWhatSomebodyElseInstallsIsLeftToThem(t *testing.T) {
	for _, state := range []metal3.ProvisioningState{metal3.StateDeprovisioning, metal3.StateAvailable, "other"} {
		f := facts(state, hardware.PowerOn).with(func(f *Facts) {
			f.Record.LastTenant, f.Host.ExternallyProvisioned, f.Host.Online, f.Grant = unknownTenant, true, true, &breaker.Answer{IsGranted: true}
		})
		d := Plan(f)
		if d.Status.State != metal3.StateExternallyProvisioned || d.Action.Kind != ActionNone || d.NeedsGrant || d.Record.LastTenant != "" {
			t.Errorf("%q: state %q, action %q, last tenant %q, asks %t", state, d.Status.State, d.Action.Kind, d.Record.LastTenant, d.NeedsGrant)
		}
		f.Host.Status, f.Record = d.Status, d.Record
		f.Host.Deleting = true
		if d := Plan(f); d.Record.Wanted != nil || d.Action.Kind != ActionNone {
			t.Errorf("%q, and its host is deleted: action %q, attempt %+v", state, d.Action.Kind, d.Record.Wanted)
		}
		f.Host.Deleting, f.Host.ExternallyProvisioned, f.Grant = false, false, nil
		if d := Plan(f); d.Status.State != metal3.StateDeprovisioning || d.Action.Kind != ActionNone || !d.NeedsGrant {
			t.Errorf("%q, and nobody else installs it any more: state %q, action %q", state, d.Status.State, d.Action.Kind)
		}
	}
	for about, change := range map[string]func(*Facts){
		"its tenant is known":    func(f *Facts) { f.Record.LastTenant = "team/research" },
		"its erase was begun":    func(f *Facts) { *f = f.attempted(4, hardware.OpErase, hardware.AttemptFailed, "DiskError") },
		"a Machine has the host": func(f *Facts) { f.Host.Claimed = true },
	} {
		f := facts(metal3.StateDeprovisioning, hardware.PowerOff).with(func(f *Facts) { f.Record.LastTenant, f.Host.ExternallyProvisioned = unknownTenant, true }).with(change)
		if d := Plan(f); d.Status.State != metal3.StateDeprovisioning {
			t.Errorf("%s: it is left to others: %q", about, d.Status.State)
		}
	}
}

func TestAValueOfANewerVersionIsShownAndWaitedOn(t *testing.T) {
	for about, change := range map[string]func(*v1alpha1.WantedAttempt){
		"operation Sanitize": func(w *v1alpha1.WantedAttempt) { w.Operation = "Sanitize" },
		"outcome Postponed":  func(w *v1alpha1.WantedAttempt) { w.Outcome = "Postponed" },
	} {
		f := facts(metal3.StateProvisioning, hardware.PowerOn).claimed().attempted(4, hardware.OpInstall, hardware.AttemptRunning, "")
		change(f.Record.Wanted)
		d := Plan(f)
		if d.Action.Kind != ActionNone || !equality.Semantic.DeepEqual(d.Record.Wanted, f.Record.Wanted) || !strings.Contains(d.Status.ErrorMessage, v1alpha1.ReasonNewerShape) || !strings.Contains(d.Status.ErrorMessage, about) || d.RequeueAfter <= 0 {
			t.Errorf("%s: action %q, error %q, wanted %+v", about, d.Action.Kind, d.Status.ErrorMessage, d.Record.Wanted)
		}
	}
}
