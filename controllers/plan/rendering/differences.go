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

// Differences says in words, one sentence for each member that differs, what would change for a node that was installed with the
// plan before and were installed again with the plan after. Nothing that shapes or judges a node is left out.
func Differences(before, after v1alpha1.NodePlan) ([]string, error) {
	was, err := decodedPlan(before)
	if err != nil {
		return nil, err
	}
	would, err := decodedPlan(after)
	if err != nil {
		return nil, err
	}
	return differencesAt("", was, would), nil
}

// tree is what shapes a node as JSON has it: a member that the API gets later is compared without a change here.
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

func differencesAt(path string, was, would any) []string {
	if reflect.DeepEqual(was, would) {
		return nil
	}
	before, after := members(was), members(would)
	if isReportedAt(path, was, would) {
		return []string{differenceText(path, was, would)}
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

// isTold says whether a difference is told at this path, and not at the members below it: there are none on one side that has a
// value, or an item of a list comes or goes as a whole.
func isReportedAt(path string, was, would any) bool {
	if was == nil || would == nil {
		return isItem(path) || members(was) == nil && members(would) == nil
	}
	return members(was) == nil || members(would) == nil
}

// isItem says whether the path ends with an item of a list: one that comes or goes is told as a whole.
func isItem(path string) bool { return strings.HasSuffix(path, "]") }

// join is the path of a member; the key of a list's item is in brackets already.
func memberPath(path, key string) string {
	if path == "" || strings.HasPrefix(key, "[") {
		return path + key
	}
	return path + "." + key
}

// identities are the members that tell the items of a list apart, the first that an item has.
var keyMembers = []string{"name", "path", "key", "driver", "resourceName", "type"}

// members of an object, or of a list by what tells its items apart; nil: the value is neither.
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

// mostShown is the longest value that a sentence quotes, in bytes: files are not.
const maxQuoted = 80

func differenceText(path string, was, would any) string {
	switch {
	case was == nil:
		return path + withValue(" would be added", would)
	case would == nil:
		return path + withValue(" would be gone", was)
	}
	before, after := quotedValue(was), quotedValue(would)
	if before == "" || after == "" {
		return path + " would have another content"
	}
	return fmt.Sprintf("%s is %s and would be %s", path, before, after)
}

// shown adds the value, unless the path says it or it is too long.
func withValue(what string, value any) string {
	if s := quotedValue(value); s != "" && s != "true" {
		if _, isText := value.(string); !isText {
			return what + ": " + s
		}
	}
	return what
}

// text of a value that a sentence can quote; empty: it is too long, or has lines.
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
