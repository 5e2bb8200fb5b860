package kubelet

import (
	"encoding/json"
	"fmt"
	"maps"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// dropInSuffix is that of the files of --config-dir which kubelet reads.
const dropInSuffix = ".conf"

// defaultEviction are the thresholds that kubelet has on Linux before it reads any file (pkg/kubelet/eviction/defaults_linux.go).
var defaultEviction = map[string]string{
	"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%",
}

// readFiles reads the file of --config and those of --config-dir. Each of the latter is merged into what was read before, as RFC 7396 says; the thresholds
// of the first are complete by then (cmd/kubelet/app/server.go, mergeKubeletConfigurations).
func (s *settings) readFiles(paths []string, readFile func(string) ([]byte, error)) error {
	merged := map[string]any{}
	for i, path := range paths {
		text, err := readFile(path)
		if err != nil {
			return fmt.Errorf("%w: --config: %w", errConfig, err)
		}
		// Stricter than kubelet, which only warns of a field that it does not know.
		var one kubeletconfig.KubeletConfiguration
		if err := decodeStrictly(text, &one); err != nil {
			return fmt.Errorf("%w: %s: %w", errConfig, path, err)
		}
		var tree map[string]any
		if err := yaml.Unmarshal(text, &tree); err != nil {
			return fmt.Errorf("%w: %s: %w", errConfig, path, err)
		}
		if i == 0 && one.EvictionHard == nil {
			tree["evictionHard"] = anyValues(defaultEviction)
		}
		merge(merged, tree)
	}
	text, err := json.Marshal(merged)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &s.file); err != nil {
		return fmt.Errorf("%w: %w", errConfig, err)
	}
	if s.file.EvictionHard == nil {
		s.file.EvictionHard = maps.Clone(defaultEviction)
	}
	return nil
}

// anyValues returns the map as a JSON object.
func anyValues(in map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range in {
		out[key] = value
	}
	return out
}

// merge merges a later object into an earlier one: objects member by member, null removes, and everything else replaces.
func merge(into, later map[string]any) {
	for name, value := range later {
		object, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case isObject:
			earlier, has := into[name].(map[string]any)
			if !has {
				earlier = map[string]any{}
			}
			merge(earlier, object)
			into[name] = earlier
		default:
			into[name] = value
		}
	}
}
