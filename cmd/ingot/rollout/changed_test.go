package rollout

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhoChangedTheNodeTypeIsSaidWithTheTime(t *testing.T) {
	made := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	entry := func(manager, subresource, fields string, after time.Duration) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(made.Add(after).In(time.FixedZone("elsewhere", 7200)))
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const spec, labels = `{"f:spec":{"f:osImageRef":{"f:name":{}}}}`, `{"f:metadata":{"f:labels":{}}}`
	early, edit, late := entry("kubectl-create", "", spec, -time.Hour), entry("kubectl-edit", "", spec, -time.Second), entry("argocd", "", spec, time.Hour)
	manager, labeller := entry("ingot-manager", "status", spec, 0), entry("kubectl-label", "", labels, 0)
	for name, c := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		"the last before the Rollout was made": {[]metav1.ManagedFieldsEntry{early, late, edit, manager, labeller}, "kubectl-edit at 2026-11-20T11:59:59Z, as"},
		"one that wrote again since":           {[]metav1.ManagedFieldsEntry{late}, "argocd at 2026-11-20T13:00:00Z, after this Rollout was made, as"},
		"nobody":                               {[]metav1.ManagedFieldsEntry{manager, labeller, {Manager: "no-time"}}, "not known"},
		"a name that moves the cursor":         {[]metav1.ManagedFieldsEntry{entry("a\x1b[2J\nb", "", spec, 0)}, "a?[2J b at"},
	} {
		if got := changeText(c.fields, made); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
