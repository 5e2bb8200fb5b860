package catalogue

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// memorySize matches the word of a name that is the size of the memory.
var memorySize = regexp.MustCompile(`^[0-9]+GB$`)

// IdentifyName returns the models that a product name may mean, as BMCs and drivers write it: "NVIDIA H100 80GB HBM3" is one model, and "H100" may
// be several. It returns none for a name that means no GPU of the catalogue.
func IdentifyName(name string) []Model {
	words := nameWords(name)
	var named []Model
	for _, m := range models {
		if !slices.ContainsFunc(chipWords(m), func(w string) bool { return !slices.Contains(words, w) }) {
			named = append(named, m)
		}
	}
	// "RTX PRO 6000 Blackwell Max-Q Workstation Edition" has all words of the Workstation's name too, and more of the Max-Q's.
	most := 0
	for _, m := range named {
		most = max(most, len(chipWords(m)))
	}
	named = narrow(named, func(m Model) bool { return len(chipWords(m)) == most })
	named = narrow(named, func(m Model) bool { return isFormNamed(m, words) })
	return narrow(named, func(m Model) bool {
		return slices.ContainsFunc(nameWords(m.Name), func(w string) bool { return memorySize.MatchString(w) && slices.Contains(words, w) })
	})
}

// narrow returns the models that match, or all of them when none does.
func narrow(named []Model, matches func(Model) bool) []Model {
	var fewer []Model
	for _, m := range named {
		if matches(m) {
			fewer = append(fewer, m)
		}
	}
	if len(fewer) == 0 {
		return named
	}
	return fewer
}

// nameWords returns the words of a name in upper case. A number and a unit behind it are one word: 80GB.
func nameWords(name string) []string {
	words := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i := len(words) - 1; i > 0; i-- {
		if words[i] == "GB" && memorySize.MatchString(words[i-1]+"GB") {
			words[i-1] += "GB"
			words = slices.Delete(words, i, i+1)
		}
	}
	return words
}

// chipWords returns the words of the model's name that every name of the product has: not how it is mounted, and not the size of its memory.
func chipWords(m Model) []string {
	return slices.DeleteFunc(nameWords(m.Name), func(w string) bool {
		return strings.HasPrefix(w, "SXM") || w == "PCIE" || w == "NVL" || memorySize.MatchString(w)
	})
}

// isFormNamed reports whether the words say that the GPU is mounted as the model is. An H100 with HBM3 is an SXM module unless it is named NVL,
// because the PCIe card has HBM2e.
func isFormNamed(m Model, words []string) bool {
	isNVL := strings.Contains(m.Name, "NVL")
	switch {
	case slices.Contains(words, "NVL"):
		return isNVL
	case slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "SXM") || w == "HBM3" }):
		return m.FormFactor == SXM
	case slices.Contains(words, "PCIE"):
		return m.FormFactor == PCIe && !isNVL
	}
	return false
}
