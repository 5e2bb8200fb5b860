package userdata

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// merger has the settings by which two cloud-configs are merged, for each kind of value (dict, list, str).
type merger map[string][]string

// defaultMerge is cloud-init's default: the later value of a key replaces the earlier one.
const defaultMerge = "dict(replace)+list()+str()"

var mergerForm = regexp.MustCompile(`^([a-z_][a-z0-9_]*)\((.*?)\)$`)

// newMerger removes merge_how and merge_type from the config and reads them. header is the part's header Merge-Type.
func newMerger(config map[string]any, header string) (merger, error) {
	how := config["merge_how"]
	if how == nil {
		how = config["merge_type"]
	}
	delete(config, "merge_how")
	delete(config, "merge_type")
	out := merger{}
	if text, ok := how.(string); ok {
		if err := out.parse(text); err != nil {
			return nil, err
		}
	}
	list, _ := how.([]any)
	for _, entry := range list {
		named, ok := entry.(map[string]any)
		settings, isList := named["settings"].([]any)
		if !ok || !isList {
			return nil, fmt.Errorf("%w: merge_how is no list of names with settings", ErrUserData)
		}
		var words []string
		for _, setting := range settings {
			words = append(words, fmt.Sprint(setting))
		}
		out.add(fmt.Sprint(named["name"]), words)
	}
	if err := out.parse(header); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return out, out.parse(defaultMerge)
	}
	return out, nil
}

// parse reads the short form, dict(replace)+list(append).
func (m merger) parse(text string) error {
	for word := range strings.SplitSeq(text, "+") {
		word = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(word)), "-", "_")
		if word == "" {
			continue
		}
		found := mergerForm.FindStringSubmatch(word)
		if found == nil {
			return fmt.Errorf("%w: a way to merge is not of the form name(settings)", ErrUserData)
		}
		var settings []string
		for setting := range strings.SplitSeq(found[2], ",") {
			settings = append(settings, strings.TrimSpace(setting))
		}
		m.add(found[1], settings)
	}
	return nil
}

// add adds the settings for a kind. The first settings of a kind count.
func (m merger) add(name string, settings []string) {
	if _, there := m[name]; !there {
		m[name] = settings
	}
}

func (m merger) has(kind, setting string) bool { return slices.Contains(m[kind], setting) }

// merge returns the result of merging a later value into an earlier one.
func (m merger) merge(earlier, later any) any {
	switch earlier := earlier.(type) {
	case map[string]any:
		if later, ok := later.(map[string]any); ok && m["dict"] != nil {
			return m.mergeDicts(earlier, later)
		}
	case []any:
		if m["list"] != nil {
			return m.mergeLists(earlier, later)
		}
	case string:
		text, ok := later.(string)
		switch {
		case ok && m.has("str", "append"):
			return earlier + text
		case m["str"] != nil:
			return later
		}
	}
	return earlier
}

func (m merger) mergeDicts(earlier, later map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range earlier {
		out[key] = value
	}
	for key, value := range later {
		old, there := out[key]
		switch {
		case there && value == nil && m.has("dict", "allow_delete"):
			delete(out, key)
		case !there || m.has("dict", "replace"):
			out[key] = value
		default:
			out[key] = m.mergeNested("dict", old, value)
		}
	}
	return out
}

// mergeNested merges values inside a dictionary or a list, where the settings of that kind ask for it.
func (m merger) mergeNested(kind string, old, value any) any {
	recurse := false
	switch value.(type) {
	case []any:
		recurse = m.has(kind, "recurse_array") || m.has(kind, "recurse_list")
	case string:
		recurse = m.has(kind, "recurse_str")
	case map[string]any:
		recurse = kind == "dict" || m.has(kind, "recurse_dict")
	}
	switch {
	case recurse:
		return m.merge(old, value)
	case kind == "list":
		return value
	}
	return old
}

func (m merger) mergeLists(earlier []any, later any) any {
	list, ok := later.([]any)
	switch {
	case !ok && !m.has("list", "append") && !m.has("list", "prepend") && !m.has("list", "no_replace"):
		return later
	case !ok:
		return earlier
	case m.has("list", "append"):
		return slices.Concat(earlier, list)
	case m.has("list", "prepend"):
		return slices.Concat(list, earlier)
	case m.has("list", "no_replace"):
		return earlier
	}
	out := slices.Clone(earlier)
	for i := range min(len(out), len(list)) {
		out[i] = m.mergeNested("list", out[i], list[i])
	}
	return out
}
