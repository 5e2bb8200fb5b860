package rendering

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Differences returns a sentence for each member in which the plans differ: what would change for a node that was installed with
// the plan before, if it were installed again with the plan after. It covers everything that shapes or judges a node.
func Differences(before, after v1alpha1.NodePlan) ([]string, error) {
	oldValue, err := decodedPlan(before)
	if err != nil {
		return nil, err
	}
	newValue, err := decodedPlan(after)
	if err != nil {
		return nil, err
	}
	return differencesAt("", oldValue, newValue), nil
}

// decodedPlan returns the plan as decoded JSON, so that members that are added to the API later are compared too.
func decodedPlan(plan v1alpha1.NodePlan) (any, error) {
	text, err := json.Marshal(withoutHints(plan))
	if err != nil {
		return nil, fmt.Errorf("encode a plan: %w", err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("read a plan: %w", err)
	}
	return out, nil
}

func differencesAt(path string, oldValue, newValue any) []string {
	if reflect.DeepEqual(oldValue, newValue) {
		return nil
	}
	before, after := members(oldValue), members(newValue)
	if isReportedAt(path, oldValue, newValue) {
		return []string{differenceText(path, oldValue, newValue)}
	}
	keys := map[string]bool{}
	for _, side := range []map[string]any{before, after} {
		for key := range side {
			keys[key] = true
		}
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, differencesAt(memberPath(path, key), before[key], after[key])...)
	}
	if len(out) == 0 {
		return []string{path + " would be in another order"}
	}
	return out
}

// isReportedAt reports whether a difference gets one sentence at this path, instead of one for each member below it: a value on
// one side has no members, or an item of a list is added or removed.
func isReportedAt(path string, oldValue, newValue any) bool {
	if oldValue == nil || newValue == nil {
		return isItem(path) || members(oldValue) == nil && members(newValue) == nil
	}
	return members(oldValue) == nil || members(newValue) == nil
}

// isItem reports whether the path ends with an item of a list.
func isItem(path string) bool { return strings.HasSuffix(path, "]") }

// memberPath returns the path of a member. The key of a list's item has brackets already.
func memberPath(path, key string) string {
	if path == "" || strings.HasPrefix(key, "[") {
		return path + key
	}
	return path + "." + key
}

// keyMembers are the members by which items of a list are identified: the first that an item has.
var keyMembers = []string{"name", "path", "key", "driver", "resourceName", "type"}

// members returns the members of an object, or the items of a list by their keys; nil: the value is neither.
func members(value any) map[string]any {
	switch v := value.(type) {
	case map[string]any:
		return v
	case []any:
		out := make(map[string]any, len(v))
		for i, item := range v {
			key := itemKey(item, i)
			for n := 2; out[key] != nil; n++ {
				key = fmt.Sprintf("%s#%d", itemKey(item, i), n)
			}
			out[key] = item
		}
		return out
	}
	return nil
}

func itemKey(item any, at int) string {
	switch v := item.(type) {
	case string:
		return "[" + v + "]"
	case map[string]any:
		for _, member := range keyMembers {
			if name, ok := v[member].(string); ok && name != "" {
				return "[" + name + "]"
			}
		}
	}
	return fmt.Sprintf("[%d]", at)
}

// maxQuoted is the length in bytes of the longest value that a sentence quotes. The contents of files are longer.
const maxQuoted = 80

func differenceText(path string, oldValue, newValue any) string {
	switch {
	case oldValue == nil:
		return path + withValue(" would be added", newValue)
	case newValue == nil:
		return path + withValue(" would be gone", oldValue)
	}
	before, after := quotedValue(oldValue), quotedValue(newValue)
	if before == "" || after == "" {
		return path + " would have another content"
	}
	return fmt.Sprintf("%s is %s and would be %s", path, before, after)
}

// withValue adds the value to the text, unless the path contains it or it is too long.
func withValue(what string, value any) string {
	if s := quotedValue(value); s != "" && s != "true" {
		if _, isText := value.(string); !isText {
			return what + ": " + s
		}
	}
	return what
}

// quotedValue returns the value as a sentence quotes it; empty: it is too long, or has several lines.
func quotedValue(value any) string {
	if s, ok := value.(string); ok {
		if len(s) > maxQuoted || strings.ContainsAny(s, "\n\r") {
			return ""
		}
		return s
	}
	out, err := json.Marshal(value)
	if err != nil || len(out) > maxQuoted {
		return ""
	}
	return string(out)
}
