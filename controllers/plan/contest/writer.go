package contest

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/input"
)

// ownManager is the field manager of what Ingot writes: the API server takes it from the user agent, which tenantaccess sets.
const ownManager = "ingot-manager"

// LastWriter returns the field manager that wrote a field of an object last; empty: the managed fields do not tell. They do not when the
// field does not exist any more, because such a field has no manager, and when Ingot wrote it since. The path is as in fieldsV1, such as f:spec and
// f:taints.
func LastWriter(fields []metav1.ManagedFieldsEntry, path ...string) string {
	last := LastWrite(fields, path...)
	if last == nil || last.Manager == ownManager {
		return ""
	}
	return input.Line(last.Manager, maxWriter)
}

// LastWrite returns the entry of whoever wrote a field of an object last; nil: the managed fields do not tell.
func LastWrite(fields []metav1.ManagedFieldsEntry, path ...string) *metav1.ManagedFieldsEntry {
	var last *metav1.ManagedFieldsEntry
	for i := range fields {
		e := &fields[i]
		if hasField(e, path) && (last == nil || last.Time == nil || e.Time != nil && e.Time.After(last.Time.Time)) {
			last = e
		}
	}
	return last
}

// hasField reports whether the entry has the field.
func hasField(e *metav1.ManagedFieldsEntry, path []string) bool {
	if e.FieldsV1 == nil {
		return false
	}
	at := json.RawMessage(e.FieldsV1.GetRawBytes())
	for _, name := range path {
		var fields map[string]json.RawMessage
		if json.Unmarshal(at, &fields) != nil {
			return false
		}
		var found bool
		if at, found = fields[name]; !found {
			return false
		}
	}
	return true
}
