package lifecycle

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// marker is in every text of a host that is for those who may read hosts.
const marker = "10.66.6.6 of Machine rival/training"

// confidential are the fields of a HostRecord with texts from a BMC or an agent, or with the names of tenants.
var confidential = []string{"Message", "LastTenant", "Tenant", "SerialNumber", "Serial", "WWN", "Path", "Address", "Hint"}

// withMarkers returns the facts with the marker in every text of the host that is for those who may read hosts.
func withMarkers(f Facts) Facts {
	if f.Host == nil || f.Host.Record == nil {
		return f
	}
	host, record := *f.Host, HostRecord{Spec: *f.Host.Record.Spec.DeepCopy(), Status: *f.Host.Record.Status.DeepCopy()}
	mark(reflect.ValueOf(&record.Status).Elem())
	host.Record, f.Host = &record, &host
	return f
}

// mark sets the confidential fields in a value that has been deep-copied.
func mark(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			mark(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			mark(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.Kind() == reflect.String && field.CanSet() && slices.Contains(confidential, v.Type().Field(i).Name) {
				field.SetString(marker)
			} else if field.CanSet() {
				mark(field)
			}
		}
	}
}

// published returns all that a decision writes where a tenant reads it.
func published(d Decision) string {
	status, err := json.Marshal(d.Status)
	if err != nil {
		panic(err)
	}
	text := string(status)
	for _, e := range d.Events {
		text += "\n" + e.Reason + " " + e.Message
	}
	return text
}

// checkDiscretion: a Machine does not repeat what only those may read who may read its host.
func (w *world) checkDiscretion(f Facts) {
	if text := published(plan(withMarkers(f), w.guards)); strings.Contains(text, marker) {
		w.violated("discretion: %s says %s", f.Machine.Name, text)
	}
}

func TestAMachineTellsNothingOfItsHostThatOnlyReadersOfHostsMayKnow(t *testing.T) {
	for _, s := range slices.Concat(situations, powerSituations, sameServerSituations) {
		f := factsIn(t, s.phase)
		if s.change != nil {
			s.change(&f)
		}
		if f.Host != nil && f.Host.Record != nil {
			failed := v1alpha1.HostError{Reason: f.Host.ErrorReason}
			f.Host.Record.Status.Error = &failed
		}
		if text := published(Plan(withMarkers(f))); strings.Contains(text, marker) {
			t.Errorf("%s, %s: %s", s.phase, s.name, text)
		}
	}
	f := factsIn(t, v1alpha1.MachineProvisioning)
	f.Host.Record.Spec = scope{Facts: f, guards: realGuards()}.desiredRecord()
	atStep(&f, "Booting", 0, 0, 0)
	w := f.Host.Record.Status.Wanted
	w.Outcome, w.Reason, w.Step, w.Message = v1alpha1.AttemptFailed, "BootLoop", "Booting", "seen"
	if text := published(Plan(withMarkers(f))); strings.Contains(text, marker) || !strings.Contains(text, "at Booting, the server boots the installer again and again") {
		t.Errorf("a failed attempt: %s", text)
	}
}

func TestEveryReasonOfAHostHasWordsForTenants(t *testing.T) {
	for reason, kind := range failureKinds {
		if kind == "" || strings.ContainsAny(kind, ":%") {
			t.Errorf("%s: %q", reason, kind)
		}
	}
	if got := failureKind("Unheard"); got != "its controller reports Unheard" {
		t.Errorf("a reason without words: %q", got)
	}
}
