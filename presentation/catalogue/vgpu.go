package catalogue

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// VGPUType is a kind of virtual GPU.
type VGPUType struct {
	// Name as the vGPU manager has it: H100XM-20C, or H100XM-1-10CME of a MIG instance.
	Name string
	// Series is what the type is licensed for: C compute, Q workstation.
	Series string
	// GiB of frame buffer.
	GiB int
	// Slices of compute of the MIG instance behind it; 0: it shares the whole GPU in time.
	Slices int
	// Media says that the MIG instance has the media engines.
	Media bool
	// Max is how many one GPU can have.
	Max int
}

// vgpuType is a type in models.go: 20C4 is four of 20C, and 1-10CME1 one of 1-10CME.
var vgpuType = regexp.MustCompile(`^(([1-7])-)?([1-9][0-9]{0,2})([CQ])(ME)?([1-9][0-9]?)$`)

// VGPUTypes are the model's types of virtual GPU, from the configuration that NVIDIA's operator ships.
func (m Model) VGPUTypes() []VGPUType {
	var out []VGPUType
	for _, word := range strings.Fields(m.vgpu) {
		part := vgpuType.FindStringSubmatch(word)
		if part == nil {
			continue
		}
		number := func(s string) int { n, _ := strconv.Atoi(s); return n }
		out = append(out, VGPUType{
			Name:   m.VGPUName + "-" + part[1] + part[3] + part[4] + part[5],
			Series: part[4], GiB: number(part[3]), Slices: number(part[2]), Media: part[5] != "", Max: number(part[6]),
		})
	}
	return out
}

// ProfileOf is the index of the MIG profile behind a type among the geometry's; -1: there is none.
func (m Model) ProfileOf(v VGPUType) int {
	if m.Geometry == nil || v.Slices == 0 {
		return -1
	}
	name := fmt.Sprintf("%dg.%dgb", v.Slices, v.GiB)
	if v.Media {
		name += "+me"
	}
	return slices.IndexFunc(m.Geometry.Profiles, func(p Profile) bool { return slices.Contains(m.ProfileNames(p), name) })
}
