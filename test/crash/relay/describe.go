package relay

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// isCounted reports whether a request counts as a change.
func isCounted(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	if strings.Contains(r.URL.Path, sessionsPath) {
		return false
	}
	group, resource := resourceOf(r.URL.Path)
	switch {
	case resource == "events",
		group == "coordination.k8s.io" && resource == "leases",
		group == "authorization.k8s.io", group == "authentication.k8s.io":
		return false
	}
	return true
}

// resourceOf returns the group and the resource of a Kubernetes path; both are empty for any other path.
func resourceOf(path string) (group, resource string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return "", ""
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		// A namespace itself has subresources as well.
		if parts[2] == "status" || parts[2] == "finalize" {
			return group, parts[0]
		}
		parts = parts[2:]
	}
	return group, parts[0]
}

// shorten returns a Kubernetes path from the resource on.
func shorten(path string) string {
	_, resource := resourceOf(path)
	if resource == "" {
		return path
	}
	return path[strings.Index(path, "/"+resource)+1:]
}

// kindOf returns a Kubernetes path from the resource on, without the object's name.
func kindOf(path string) string {
	parts := strings.Split(shorten(path), "/")
	if len(parts) > 1 && parts[0] != "" {
		parts = slices.Delete(parts, 1, 2)
	}
	return strings.Join(parts, "/")
}

// describedFields are the fields whose values describe a request and are not secret.
var describedFields = []string{"phase", "state", "step", "online", "unschedulable", "ResetType", "BootSourceOverrideTarget"}

// describeBody lists the fields that a JSON body sets, two levels deep, with the values of describedFields.
func describeBody(body []byte) string {
	var document map[string]any
	if json.Unmarshal(body, &document) != nil {
		return ""
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(document)) {
		if name != "apiVersion" && name != "kind" && name != "metadata" && name != "data" {
			out = append(out, describeField(name, document[name], 2)...)
		}
	}
	metadata, _ := document["metadata"].(map[string]any)
	for _, name := range []string{"annotations", "finalizers", "labels"} {
		if _, ok := metadata[name]; ok {
			out = append(out, "metadata."+name)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func describeField(name string, value any, depth int) []string {
	leaf := name[strings.LastIndex(name, ".")+1:]
	inner, nested := value.(map[string]any)
	switch {
	case slices.Contains(describedFields, leaf):
		return []string{fmt.Sprintf("%s=%v", name, value)}
	case !nested || depth == 0:
		return []string{name}
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(inner)) {
		if _, deeper := inner[key].(map[string]any); deeper || slices.Contains(describedFields, key) || depth > 1 {
			out = append(out, describeField(name+"."+key, inner[key], depth-1)...)
		}
	}
	if len(out) == 0 {
		return []string{name}
	}
	return out
}
