package environment_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ingot-dev/ingot/test/environment"
)

const manager = "system:serviceaccount:ingot-system:ingot-manager"

func line(stage, verb, user, resource, subresource, code string) string {
	return `{"kind":"Event","stage":"` + stage + `","verb":"` + verb + `","user":{"username":"` + user + `"},"objectRef":{"resource":"` + resource +
		`","subresource":"` + subresource + `"},"responseStatus":{"code":` + code + `},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z"}` + "\n"
}

func TestAnAuditLogTellsWhatAUserAskedFor(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tenant-audit-2026-01-02T00-00-00.000.log": line("ResponseComplete", "create", manager, "nodes", "", "201"),
		"tenant-audit.log": line("ResponseComplete", "patch", manager, "machines", "status", "409") +
			line("ResponseStarted", "patch", manager, "machines", "", "200") +
			line("ResponseComplete", "list", manager, "machines", "", "200") +
			line("ResponseComplete", "patch", "somebody about "+manager, "machines", "", "200") +
			line("ResponseComplete", "delete", manager, "events", "", "200") +
			`{"stage":"ResponseComplete","user":{"username":"` + manager,
		"other-audit.log": line("ResponseComplete", "delete", manager, "secrets", "", "200"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	log := filepath.Join(dir, "tenant-audit.log")
	if err := environment.ReadRequests(log, manager, func(w environment.Request) {
		if w.At.Year() != 2026 {
			t.Errorf("%v came in at %s", w, w.At)
		}
		got = append(got, w.Verb+" "+w.Resource+"/"+w.Subresource)
		if (w.Code == 409) != (w.Subresource == "status") {
			t.Errorf("%v was answered with %d", w, w.Code)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"create nodes/", "patch machines/status", "list machines/", "delete events/"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	writes, err := environment.CountWrites(log, manager)
	if err != nil || writes.Total() != 3 || writes["machines"] != 1 {
		t.Errorf("got %v, %v", writes, err)
	}
}

func TestAMissingAuditLogIsAnError(t *testing.T) {
	if _, err := environment.CountWrites(filepath.Join(t.TempDir(), "audit.log"), manager); err == nil {
		t.Error("got none")
	}
}
