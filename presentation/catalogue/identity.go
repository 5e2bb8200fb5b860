package catalogue

import (
	"slices"
)

// ProductWords returns how drivers name GPUs of the model: words has those that every name has, and absent those that only names of other models
// have. What this leaves open, such as an A100 of 40 GB or of 80 GB, the memory tells.
func (m Model) ProductWords() (words, absent []string) {
	words = chipWords(m)
	hasOtherForm := false
	for _, other := range models {
		theirs := chipWords(other)
		if other.Vendor != m.Vendor || other.Name == m.Name {
			continue
		}
		hasOtherForm = hasOtherForm || slices.Equal(theirs, words) && formWord(other) != formWord(m)
		if len(theirs) > len(words) && slices.Contains(theirs, words[0]) {
			absent = append(absent, slices.DeleteFunc(theirs, func(w string) bool { return slices.Contains(words, w) || slices.Contains(absent, w) })...)
		}
	}
	if hasOtherForm {
		absent = append(absent, otherForms[formWord(m)]...)
		if formWord(m) != formSXM {
			words = append(words, formWord(m))
		}
	}
	return words, absent
}

// The ways in which a GPU is mounted, as far as product names tell them.
const (
	formNVL  = "NVL"
	formPCIe = "PCIE"
	formSXM  = "SXM"
)

// otherForms has for each way the words that only names of GPUs have that are mounted otherwise. Where a product is sold in several forms the names of cards say
// PCIe or NVL. Names of modules say SXM4, or HBM3, or nothing: "NVIDIA H200" (the list of GPUs of NVIDIA's open kernel modules).
var otherForms = map[string][]string{
	formNVL:  {formPCIe, "HBM3", "SXM4", "SXM5"},
	formPCIe: {formNVL, "HBM3", "SXM4", "SXM5"},
	formSXM:  {formNVL, formPCIe},
}

func formWord(m Model) string {
	switch {
	case slices.Contains(nameWords(m.Name), formNVL):
		return formNVL
	case m.FormFactor == PCIe:
		return formPCIe
	}
	return formSXM
}

// The parts of the nominal memory that a driver may report, in percent. It keeps up to 2% for itself, and error correction takes a 16th of GDDR6 memory: an
// L40S of 48 GB has 46068 MiB, a T4 of 16 GB 15360. An instance of 1g.5gb has 4864 of 5120 MiB. Products with the same words differ by more.
const (
	leastMemory         = 90
	leastInstanceMemory = 85
)

// MemoryMiB returns the range of the total memory that drivers report for a GPU of the model.
func (m Model) MemoryMiB() (minimum, maximum int64) {
	return m.nominalMiB(leastMemory)
}

// InstanceMemoryMiB returns the range of the memory that drivers report for a MIG instance of the profile: its share of the GPU's.
func (m Model) InstanceMemoryMiB(p Profile) (minimum, maximum int64) {
	minimum, maximum = m.nominalMiB(leastInstanceMemory)
	slots := int64(m.Geometry.MemorySlices)
	return minimum * int64(p.MemorySlices) / slots, (maximum*int64(p.MemorySlices) + slots - 1) / slots
}

func (m Model) nominalMiB(least int64) (minimum, maximum int64) {
	const mebibytes = 1024
	return int64(slices.Min(m.MemoryGiB)) * mebibytes * least / 100, int64(slices.Max(m.MemoryGiB)) * mebibytes
}
