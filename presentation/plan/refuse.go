package plan

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Refuse makes a *Refusal with a formatted message.
func Refuse(field Field, reason, rule, format string, args ...any) error {
	return &Refusal{Field: field, Reason: reason, Rule: rule, Message: fmt.Sprintf(format, args...)}
}

// Field is a field that a person wrote, or left out.
type Field struct {
	// Kind of the object: KindNodeType or KindOSImage.
	Kind string
	// Path in the object: spec.gpu.presentation.mig.layout[0].profiles.
	Path string
}

// Kinds of objects that fields are of.
const (
	KindNodeType = "NodeType"
	KindOSImage  = "OSImage"
)

// GPUField is a field of the NodeType's spec.gpu, such as driver.source; empty: spec.gpu itself.
func GPUField(path string) Field { return Field{KindNodeType, pathBelow("spec.gpu", path)} }

// PresentationField is a field of the NodeType's spec.gpu.presentation, such as mig.layout[0].profiles.
func PresentationField(path string) Field {
	return Field{KindNodeType, pathBelow("spec.gpu.presentation", path)}
}

// ResourceField is the promise of that resource in the NodeType.
func ResourceField(name string) Field { return Field{KindNodeType, "spec.resources[" + name + "]"} }

// ImageField is a field of the OSImage's spec, such as software.containerd.
func ImageField(path string) Field { return Field{KindOSImage, pathBelow("spec", path)} }

// DriverField is where the version of the GPU driver is written, or another field beside it: in the NodeType or, when the driver
// is baked in, in the OSImage.
func DriverField(source v1alpha1.DriverSource, path string) Field {
	if source == "" || source == v1alpha1.DriverFromImage {
		return ImageField("software.gpuDriver." + path)
	}
	return GPUField("driver." + path)
}

func pathBelow(parent, path string) string {
	if path == "" {
		return parent
	}
	return parent + "." + path
}

// IsOfImage says whether the OSImage has the field, and not the NodeType.
func (f Field) IsOfImage() bool { return f.Kind == KindOSImage }

// String is the path; for the OSImage with its kind, since whoever reads it looks at a NodeType.
func (f Field) String() string {
	if f.IsOfImage() {
		return "the OSImage's " + f.Path
	}
	return f.Path
}
