package explain

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Explanation is what `-o json` prints. Empty lists and maps are printed too.
type Explanation struct {
	NodeType string `json:"nodeType"`
	OSImage  string `json:"osImage"`
	// Installed is what a Machine was installed with; absent where a NodeType of manifests is explained.
	Installed *Installed `json:"installed,omitempty"`
	// GPU is a summary of the GPUs; absent: the nodes have none.
	GPU *GPU `json:"gpu,omitempty"`

	// Resources that capacity and allocatable must both equal, by name.
	Resources map[string]int64 `json:"resources"`
	// Promised of the node's own resources: cpu is exact, memory may be up to 5% less, ephemeral-storage may be more.
	Promised map[string]string `json:"promised"`
	// Absent are resources that must not be advertised; a name that ends in / stands for all that begin with it and are
	// not in Resources.
	Absent []string `json:"absent"`
	// AbsentDrivers are DRA drivers that must publish no device for the node.
	AbsentDrivers []string `json:"absentDrivers"`
	// Slices that DRA drivers must publish.
	Slices []Slice `json:"slices"`
	// Kernel and Kubelet are the versions that must run; absent: any.
	Kernel  string `json:"kernel,omitempty"`
	Kubelet string `json:"kubelet,omitempty"`

	// Labels are NodeLabels and ExpectedLabels together.
	Labels map[string]string `json:"labels"`
	// NodeLabels that kubelet registers with.
	NodeLabels map[string]string `json:"nodeLabels"`
	// ExpectedLabels are compared where the node has them.
	ExpectedLabels []Label `json:"expectedLabels"`

	KernelArguments []string `json:"kernelArguments"`
	Modules         Modules  `json:"modules"`
	Packages        []string `json:"packages"`
	Files           []File   `json:"files"`
	// Units in the order in which they are started.
	Units []Unit `json:"units"`

	// SecretFiles are added when the documents are rendered; no plan has their content.
	SecretFiles []SecretFile `json:"secretFiles"`
	// Warnings are what people must know about a plan that was not refused.
	Warnings []Warning `json:"warnings"`
}

// Installed is what a Machine was installed with, and what the NodeType's target would change.
type Installed struct {
	// Machine is namespace/name.
	Machine string `json:"machine"`
	// Revision and Rendering name what it was installed with.
	Revision  string `json:"revision"`
	Rendering string `json:"rendering"`
	// Target is the rendering that the NodeType asks for, and Differences are what it would change, in words.
	Target      string   `json:"target"`
	Differences []string `json:"differences"`
	// Current says whether the manager's version of Ingot would make the target rendering again: True, False or Unknown, and why.
	Current string `json:"current"`
	Message string `json:"message"`
}

// GPU is what a server has, and how it is presented.
type GPU struct {
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	Count  int32  `json:"count"`
	Mode   string `json:"mode"`
}

// Slice is what one DRA driver must publish.
type Slice struct {
	Driver        string        `json:"driver"`
	DeviceClasses []DeviceClass `json:"deviceClasses"`
	Devices       []Device      `json:"devices"`
	Hint          string        `json:"hint,omitempty"`
}

// DeviceClass must select Count devices of the node.
type DeviceClass struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Device is Count devices of one kind.
type Device struct {
	Type string `json:"type"`
	// Profiles are the accepted names of the profile.
	Profiles []string `json:"profiles,omitempty"`
	Count    int      `json:"count"`
	// Attributes with the values that are accepted; those in Optional are compared only where a device has them.
	Attributes map[string][]string `json:"attributes,omitempty"`
	Optional   []string            `json:"optional,omitempty"`
}

// Label is a label that is compared where the node has it.
type Label struct {
	Check string `json:"check"`
	Key   string `json:"key"`
	Value string `json:"value"`
	// Passing are further values that the label has while the software that sets it still works.
	Passing []string `json:"passing,omitempty"`
	Hint    string   `json:"hint,omitempty"`
}

// SecretFile is a file of the node whose content is a key of a Secret in the host namespace.
type SecretFile struct {
	Path   string `json:"path"`
	Mode   string `json:"mode"`
	Secret string `json:"secret"`
	Key    string `json:"key"`
}

// Warning is something that is not certain and is not refused either.
type Warning struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// Modules are modules of the kernel.
type Modules struct {
	Load      []string `json:"load"`
	Blacklist []string `json:"blacklist"`
}

// File is a file of the node.
type File struct {
	Path    string `json:"path"`
	Mode    string `json:"mode"`
	Content string `json:"content"`
}

// Unit is a systemd unit. Without content it is part of the image.
type Unit struct {
	Name    string `json:"name"`
	Content string `json:"content,omitempty"`
}

// Explain returns the explanation of a plan in types of its own, so that the output stays the same when the types of plans change.
func Explain(s offline.NodeInputs, plan v1alpha1.NodePlan) Explanation {
	return newExplanation(s.NodeType.Name, s.Image.Name, s.NodeType.Spec.GPU, plan)
}

func newExplanation(nodeType, image string, gpu *v1alpha1.GPUSpec, plan v1alpha1.NodePlan) Explanation {
	e := plan.Expectation
	out := Explanation{
		NodeType: nodeType, OSImage: image,
		Resources: map[string]int64{}, Promised: promisedQuantities(e), Absent: nonNil(e.AbsentPrefixes), AbsentDrivers: nonNil(e.AbsentDrivers),
		Slices: []Slice{}, Kernel: e.Kernel, Kubelet: e.Kubelet,
		Labels: map[string]string{}, NodeLabels: map[string]string{}, ExpectedLabels: []Label{},
		KernelArguments: nonNil(plan.KernelArguments), Packages: nonNil(plan.Packages),
		Modules: Modules{Load: nonNil(plan.Modules.Load), Blacklist: nonNil(plan.Modules.Blacklist)},
		Files:   []File{}, Units: []Unit{}, SecretFiles: []SecretFile{}, Warnings: []Warning{},
	}
	if gpu != nil {
		out.GPU = &GPU{Vendor: string(gpu.Vendor), Model: gpu.Model, Count: gpu.Count, Mode: string(gpu.Presentation.Mode)}
	}
	for _, r := range e.Resources {
		out.Resources[string(r.Name)] = r.Quantity.Value()
	}
	maps.Copy(out.NodeLabels, plan.NodeLabels)
	maps.Copy(out.Labels, plan.NodeLabels)
	for _, l := range e.Labels {
		out.Labels[l.Key] = l.Value
		out.ExpectedLabels = append(out.ExpectedLabels, Label{Check: l.Check, Key: l.Key, Value: l.Value, Passing: l.Passing, Hint: l.Hint})
	}
	for _, s := range e.Slices {
		out.Slices = append(out.Slices, newSlice(s))
	}
	for _, f := range plan.Files {
		out.Files = append(out.Files, File{Path: f.Path, Mode: f.Mode, Content: f.Content})
	}
	for _, u := range plan.Units {
		out.Units = append(out.Units, Unit{Name: u.Name, Content: u.Content})
	}
	for _, f := range plan.SecretFiles {
		out.SecretFiles = append(out.SecretFiles, SecretFile{Path: f.Path, Mode: f.Mode, Secret: f.Secret, Key: f.Key})
	}
	for _, w := range plan.Warnings {
		out.Warnings = append(out.Warnings, Warning{Rule: w.Rule, Message: w.Message})
	}
	return out
}

func newSlice(s v1alpha1.ExpectedSlices) Slice {
	out := Slice{Driver: s.Driver, DeviceClasses: []DeviceClass{}, Devices: []Device{}, Hint: s.Hint}
	for _, c := range s.DeviceClasses {
		out.DeviceClasses = append(out.DeviceClasses, DeviceClass{Name: c.Name, Count: c.Count})
	}
	for _, d := range s.Devices {
		out.Devices = append(out.Devices, Device{Type: d.Type, Profiles: d.Profiles, Count: d.Count, Attributes: d.Attributes, Optional: d.Optional})
	}
	return out
}

func promisedQuantities(e v1alpha1.NodeExpectation) map[string]string {
	out := map[string]string{}
	for name, quantity := range map[string]*resource.Quantity{"cpu": e.CPU, "memory": e.Memory, "ephemeral-storage": e.EphemeralStorage} {
		if quantity != nil {
			out[name] = quantity.String()
		}
	}
	return out
}

// nonNil returns a copy that is never nil, so that it is [] and not null in JSON.
func nonNil(of []string) []string { return append([]string{}, slices.Clone(of)...) }
