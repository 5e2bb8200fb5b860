package kubelet

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// server96 has 96 CPUs and 512Gi, of which the kernel takes 1.6%.
var server96 = Hardware{CPUs: 96, MemoryBytes: 512 << 30, DiskBytes: 1 << 40}

// reserved starts kubelet with these files, and returns what pods cannot have of CPUs and memory, or why it does not start.
func reserved(files map[string]string, words ...string) string {
	k, err := New(Options{
		Arguments: append([]string{"/usr/bin/kubelet", "--kubeconfig=/k", "--config=/c"}, words...), Hostname: "host-1", Hardware: server96,
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := files[path]; ok {
				return []byte(header + text), nil
			}
			return nil, fs.ErrNotExist
		},
		ListFiles: func(directory string) []string {
			return slices.Sorted(func(yield func(string) bool) {
				for path := range maps.Keys(files) {
					if strings.HasPrefix(path, directory+"/") && !yield(path) {
						return
					}
				}
			})
		},
	})
	if err != nil {
		return err.Error()
	}
	capacity, allocatable := corev1.ResourceList{}, corev1.ResourceList{}
	k.fillResources(capacity, allocatable)
	cpu, memory := capacity[corev1.ResourceCPU], capacity[corev1.ResourceMemory]
	cpu.Sub(allocatable[corev1.ResourceCPU])
	memory.Sub(allocatable[corev1.ResourceMemory])
	return cpu.String() + " " + memory.String() + " " + allocatable.Pods().String()
}

func TestTheFilesOfTheDirectoryAreMergedInTheirOrder(t *testing.T) {
	const dir = "--config-dir=/d"
	for name, c := range map[string]struct {
		files map[string]string
		words []string
		want  string
	}{
		"the file of --config alone": {map[string]string{"/c": "kubeReserved: {cpu: '1', memory: 1Gi}\n", "/d/1.conf": "maxPods: 5\n"}, nil, "1 1124Mi 110"},
		"a later file wins member by member": {map[string]string{"/c": "kubeReserved: {cpu: '1', memory: 1Gi}\n", "/d/1.conf": "kubeReserved: {memory: 2Gi}\nmaxPods: 9\n", "/d/2.conf": "maxPods: 5\n"},
			[]string{dir}, "1 2148Mi 5"},
		"only what ends in .conf":   {map[string]string{"/c": "", "/d/1.yaml": "maxPods: 5\n", "/d/below/1.conf": "maxPods: 6\n"}, []string{dir}, "0 100Mi 6"},
		"null takes a member away":  {map[string]string{"/c": "maxPods: 5\n", "/d/1.conf": "maxPods: null\n"}, []string{dir}, "0 100Mi 110"},
		"a threshold beside others": {map[string]string{"/c": "", "/d/1.conf": "evictionHard: {nodefs.available: 1%}\n"}, []string{dir}, "0 100Mi 110"},
		"a threshold":               {map[string]string{"/c": "", "/d/1.conf": "evictionHard: {memory.available: 50%}\n"}, []string{dir}, "0 264140488Ki 110"},
		"CPUs by their numbers":     {map[string]string{"/c": "kubeReserved: {cpu: '9'}\n", "/d/1.conf": "reservedSystemCPUs: 0-1,48-49\n"}, []string{dir}, "4 100Mi 110"},
		"no such member":            {map[string]string{"/c": "", "/d/1.conf": "maxPod: 5\n"}, []string{dir}, "unknown field"},
		"more than there is":        {map[string]string{"/c": "", "/d/1.conf": "systemReserved: {memory: 600Gi}\n"}, []string{dir}, "expected capacity >= reservation"},
	} {
		if got := reserved(c.files, c.words...); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, expected %s", name, got, c.want)
		}
	}
	if _, err := New(Options{Arguments: []string{"kubelet", "--kubeconfig=/k", "--config=/c"}, Hostname: "h", ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }}); !errors.Is(err, errConfig) {
		t.Errorf("without its file: %v", err)
	}
}
