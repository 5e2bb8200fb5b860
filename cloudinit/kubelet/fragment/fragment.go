package fragment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	strictjson "sigs.k8s.io/json"
)

// Finding is a member that is refused.
type Finding struct {
	// Path of the member: kubeReserved.memory; empty: all of the fragment.
	Path string
	// Message says what was expected and what to do instead.
	Message string
	// OfRelease: another image could have a kubelet that accepts it.
	OfRelease bool
}

// FirstMinor is the minor version of the first kubelet that reads a fragment: --config-dir needs no switch in its environment (KEP-3983, beta in 1.30).
const FirstMinor = 30

// Minor returns the minor version of a kubelet: 37 of 1.37.0. known is false when the text is no version of Kubernetes 1.
func Minor(version string) (minor int, known bool) {
	rest, isFirst := strings.CutPrefix(strings.TrimPrefix(version, "v"), "1.")
	text, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(text)
	return minor, isFirst && err == nil
}

// Check returns what is wrong with a user's members, a JSON object, for the kubelet of a version. With no findings kubelet reads them as they are meant.
func Check(members []byte, version string) []Finding {
	if len(members) == 0 {
		return nil
	}
	if minor, known := Minor(version); known && minor < FirstMinor {
		return []Finding{{OfRelease: true, Message: fmt.Sprintf("the image's kubelet %s reads no settings from a directory: use an image with kubelet 1.%d or later, or remove spec.kubelet", version, FirstMinor)}}
	}
	decoder := json.NewDecoder(bytes.NewReader(members))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil || tree == nil {
		return []Finding{{Message: "it must be an object of members of KubeletConfiguration, such as maxPods: 250"}}
	}
	var config kubeletconfig.KubeletConfiguration
	out := ownedFindings(tree)
	unknown, err := strictjson.UnmarshalStrict(members, &config)
	for _, problem := range unknown {
		out = append(out, unknownFinding(problem))
	}
	if err != nil {
		return append(out, typeFinding(err))
	}
	out = append(out, nullFindings(tree, "")...)
	minor := releaseOf(version)
	out = append(out, releaseFindings(tree, "", minor, version)...)
	out = append(out, gateFindings(config.FeatureGates, minor, version)...)
	return append(out, valueFindings(config)...)
}

// releaseOf returns the release of the table that stands for a version: the nearest one. What a release after the newest has changed is not known.
func releaseOf(version string) int {
	minors := table().Minors
	minor, known := Minor(version)
	if !known {
		return minors[len(minors)-1]
	}
	return min(max(minor, minors[0]), minors[len(minors)-1])
}

// unknownFinding is for a member that KubeletConfiguration does not have, or that is there twice.
func unknownFinding(problem error) Finding {
	var field strictjson.FieldError
	if !errors.As(problem, &field) {
		return Finding{Message: problem.Error()}
	}
	path := field.FieldPath()
	if strings.HasPrefix(problem.Error(), "duplicate") {
		return Finding{Path: path, Message: "it is there twice"}
	}
	parent := ""
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent = path[:i+1]
	}
	// A member of an item of a list has the item's number in its path, and the table has none.
	plain := indexes.ReplaceAllString(parent, "")
	message := "KubeletConfiguration has no such member"
	if best := nearest(path[len(parent):], children(plain)); best != "" {
		message += ": did you mean " + parent + best + "?"
	}
	return Finding{Path: path, Message: message}
}

// children returns the names of the members directly below a path that ends in a dot, or at the top.
func children(prefix string) []string {
	var out []string
	for path := range maps.Keys(table().Members) {
		if name, found := strings.CutPrefix(path, prefix); found && !strings.Contains(name, ".") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// typeFinding is for a value of another type than the member's.
func typeFinding(err error) Finding {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return Finding{Path: mismatch.Field, Message: fmt.Sprintf("it is a %s, and kubelet reads a %s there", mismatch.Value, typeName(mismatch.Type.String()))}
	}
	return Finding{Message: err.Error()}
}

// typeName returns the name of a type in the words of JSON.
func typeName(goType string) string {
	name := strings.TrimLeft(goType, "*")
	switch {
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"), strings.HasPrefix(name, "float"):
		return "number"
	case name == "bool":
		return "boolean (true or false)"
	case strings.HasPrefix(name, "map["), strings.HasPrefix(name, "v1beta1."):
		return "object"
	case strings.HasPrefix(name, "[]"):
		return "list"
	}
	return "string"
}

// nullFindings refuses null: in a later file of --config-dir it takes an earlier member away, which is one of Ingot's.
func nullFindings(tree map[string]any, prefix string) []Finding {
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		switch value := tree[name].(type) {
		case nil:
			out = append(out, Finding{Path: prefix + name, Message: "it is null: leave the member out, or give its value"})
		case map[string]any:
			out = append(out, nullFindings(value, prefix+name+".")...)
		}
	}
	return out
}

// releaseFindings refuses members that the release does not have: kubelet would warn in its log and go on without them.
func releaseFindings(tree map[string]any, prefix string, minor int, version string) []Finding {
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		path := prefix + name
		switch known, found := table().Members[path]; {
		case found && known.First > minor:
			out = append(out, Finding{Path: path, OfRelease: true, Message: fmt.Sprintf("kubelet has it since 1.%d, and the image's is %s: remove it, or use an image with kubelet 1.%d", known.First, version, known.First)})
			continue
		case found && known.Last < minor:
			out = append(out, Finding{Path: path, OfRelease: true, Message: fmt.Sprintf("kubelet has it up to 1.%d, and the image's is %s: remove it", known.Last, version)})
			continue
		}
		switch value := tree[name].(type) {
		case map[string]any:
			out = append(out, releaseFindings(value, path+".", minor, version)...)
		case []any:
			for _, item := range value {
				if object, ok := item.(map[string]any); ok {
					out = append(out, releaseFindings(object, path+".", minor, version)...)
				}
			}
		}
	}
	return out
}

// firstWithBetaDefaults is a minor version whose kubelet was seen not to start with AllBeta=false: its defaults have crashLoopBackOff and
// imagePullCredentialsVerificationPolicy, whose gates are then off. Earlier ones were not tried.
const firstWithBetaDefaults = 37

// groupGates set many gates at once, and are in no list (component-base/featuregate).
var groupGates = []string{"AllAlpha", "AllBeta"}

// gateFindings refuses gates that kubelet does not start with.
func gateFindings(gates map[string]bool, minor int, version string) []Finding {
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		known, found := table().Gates[name]
		message := ""
		switch {
		case slices.Contains(groupGates, name):
			if name == "AllBeta" && !gates[name] && minor >= firstWithBetaDefaults {
				message = fmt.Sprintf("kubelet %s does not start without its beta gates, because its own defaults need them: switch single gates off", version)
			}
		case !found:
			message = unknownGate(name)
		default:
			message = known.refusal(gates[name], minor, version)
		}
		if message != "" {
			out = append(out, Finding{Path: "featureGates." + name, OfRelease: found, Message: message})
		}
	}
	return out
}

// unknownGate is the message for a gate that no release has.
func unknownGate(name string) string {
	all, minors, hint := table().Gates, table().Minors, ""
	if best := nearest(name, slices.Sorted(maps.Keys(all))); best != "" {
		hint = ": did you mean " + best + "?"
	}
	return fmt.Sprintf("no release from 1.%d to 1.%d has this feature gate, and kubelet does not start with a gate that it does not know%s", minors[0], minors[len(minors)-1], hint)
}

// refusal returns why a kubelet does not start with a value of the gate; empty: it does.
func (g Gate) refusal(value bool, minor int, version string) string {
	switch {
	case g.First > minor:
		return fmt.Sprintf("kubelet has this feature gate since 1.%d, and the image's is %s, which would not start: remove it, or use an image with kubelet 1.%d", g.First, version, g.First)
	case g.Last < minor:
		return fmt.Sprintf("kubelet has this feature gate up to 1.%d, and the image's is %s, which would not start: remove it", g.Last, version)
	case g.Locked > 0 && g.Locked <= minor && value != g.Value:
		return fmt.Sprintf("it is always %t in the image's kubelet %s, which would not start with another value: remove it", g.Value, version)
	}
	return ""
}
