package tenant

import (
	"fmt"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// requirements are the NodeTypes and OSImages that the tenant will use.
type requirements struct {
	nodeTypes []v1alpha1.NodeType
	images    []v1alpha1.OSImage
}

// readRequirements reads the NodeTypes and OSImages of files, and ignores objects of other kinds. names selects NodeTypes and with them
// their images.
func readRequirements(files, names []string) (requirements, error) {
	var all requirements
	for _, path := range files {
		if err := all.read(path); err != nil {
			return requirements{}, err
		}
	}
	if len(files) > 0 && len(all.nodeTypes)+len(all.images) == 0 {
		return requirements{}, fmt.Errorf("there is neither a NodeType nor an OSImage in %v", files)
	}
	if len(names) == 0 {
		return all, nil
	}
	var chosen requirements
	for _, name := range names {
		at := slices.IndexFunc(all.nodeTypes, func(n v1alpha1.NodeType) bool { return n.Name == name })
		if at < 0 {
			return requirements{}, fmt.Errorf("there is no NodeType %s in %v", name, files)
		}
		chosen.nodeTypes = append(chosen.nodeTypes, all.nodeTypes[at])
		image := all.nodeTypes[at].Spec.OSImageRef.Name
		if at := slices.IndexFunc(all.images, func(i v1alpha1.OSImage) bool { return i.Name == image }); at >= 0 {
			chosen.images = append(chosen.images, all.images[at])
		}
	}
	return chosen, nil
}

func (w *requirements) read(path string) error {
	manifests, err := offline.Read([]string{path}, nil)
	if err != nil {
		return fmt.Errorf("read NodeTypes and OSImages: %w", err)
	}
	for _, m := range manifests {
		var err error
		switch m.Kind() {
		case "NodeType":
			w.nodeTypes = append(w.nodeTypes, v1alpha1.NodeType{})
			err = m.Decode(&w.nodeTypes[len(w.nodeTypes)-1])
		case "OSImage":
			w.images = append(w.images, v1alpha1.OSImage{})
			err = m.Decode(&w.images[len(w.images)-1])
		}
		if err != nil {
			return fmt.Errorf("read %s: %s: %w", path, m, err)
		}
	}
	return nil
}

// gateKeys returns the taint keys of the gates.
func (w requirements) gateKeys() []string {
	var keys []string
	for i := range w.nodeTypes {
		keys = append(keys, w.nodeTypes[i].Spec.Gate.Key())
	}
	if len(keys) == 0 {
		keys = []string{v1alpha1.DefaultGateTaintKey}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// hasProbe reports whether a pod uses the devices of a NodeType's nodes before they are admitted.
func (w requirements) hasProbe() bool {
	return slices.ContainsFunc(w.nodeTypes, func(n v1alpha1.NodeType) bool { return n.Spec.Validation.Probe != nil })
}

// nodeTypesWithDRA returns the names of the NodeTypes whose GPUs are published in ResourceSlices.
func (w requirements) nodeTypesWithDRA() []string {
	var names []string
	for i := range w.nodeTypes {
		gpu := w.nodeTypes[i].Spec.GPU
		if gpu == nil {
			continue
		}
		mig := gpu.Presentation.MIG
		if gpu.Presentation.Mode == v1alpha1.ModeDRA || mig != nil && mig.Advertise == v1alpha1.AdvertiseDRA {
			names = append(names, w.nodeTypes[i].Name)
		}
	}
	return names
}
