package catalogue

import (
	"slices"
	"strings"
)

// ResourceNames are the names, without a domain, under which NVIDIA's KubeVirt device plugin can advertise the model's
// whole GPUs: one for each of its PCI ids, from the plugin's own pci.ids file. unlisted are the PCI ids that the file
// lacks: the plugin advertises them by number until a newer file names them.
func (m Model) ResourceNames() (names, unlisted []string) {
	for _, id := range m.PCIDevices {
		name, ok := pciNames[id]
		if !ok {
			unlisted = append(unlisted, id)
			continue
		}
		if n := resourceName(name); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names, unlisted
}

// resourceName is the plugin's rule: upper case, slashes and dots and runs of white space become underscores, and
// everything else that is neither a letter nor a digit goes.
func resourceName(s string) string {
	s = strings.NewReplacer("/", "_", ".", "_").Replace(strings.ToUpper(s))
	s = strings.Join(strings.Fields(s), "_")
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, s)
}
