package catalogue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// maxLookup is the length of the longest name for which similar names are searched, so that a long name costs no time.
const maxLookup = 64

// Lookup returns the model with the name. The error says which models may be meant, or which models of the vendor this version knows,
// and how a GPU without an entry is promised.
func Lookup(vendor v1alpha1.GPUVendor, name string) (Model, error) {
	var names, begin []string
	for _, m := range models {
		if m.Vendor != vendor {
			continue
		}
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
		if name != "" && strings.HasPrefix(strings.ToUpper(m.Name), strings.ToUpper(name)) {
			begin = append(begin, m.Name)
		}
	}
	if len(names) == 0 {
		return Model{}, fmt.Errorf("no GPU of vendor %q is in the catalogue", vendor)
	}
	if why := refusedProduct(vendor, name); why != "" {
		return Model{}, fmt.Errorf("%q is not in the catalogue, because %s: %s", name, why, genericAdvice)
	}
	if len(begin) > 0 {
		return Model{}, fmt.Errorf("%q is not in the catalogue of %s GPUs, where these begin so: %s", name, vendor, strings.Join(begin, ", "))
	}
	if similar := similarNames(vendor, name); len(similar) > 0 {
		return Model{}, fmt.Errorf("%q is not in the catalogue of %s GPUs: did you mean %s?", name, vendor, strings.Join(similar, " or "))
	}
	return Model{}, fmt.Errorf("%q is not in the catalogue of %s GPUs: %s; %s", name, vendor, strings.Join(names, ", "), genericAdvice)
}

// genericAdvice says how a GPU without an entry is promised.
const genericAdvice = "for another GPU set gpu.vendor: generic, and in gpu.generic what its own software advertises"

// refusedProduct returns why a product has no entry; empty: it is not one of those.
func refusedProduct(vendor v1alpha1.GPUVendor, name string) string {
	words := nameWords(name)
	for _, r := range refused {
		if r.vendor == vendor && slices.Contains(words, r.word) {
			return r.why
		}
	}
	return ""
}

// similarNames returns the models of the vendor that a name may mean: those that it means as a product name, or else those whose names differ
// least from it, if they differ in no more than a quarter of the characters. Models are in the order of the table.
func similarNames(vendor v1alpha1.GPUVendor, name string) []string {
	if name == "" || len(name) > maxLookup {
		return nil
	}
	var out []string
	for _, m := range IdentifyName(name) {
		if m.Vendor == vendor {
			out = append(out, m.Name)
		}
	}
	if len(out) > 0 {
		return out
	}
	least := max(1, len(name)/4)
	for _, m := range models {
		if m.Vendor != vendor {
			continue
		}
		switch d := editDistance(strings.ToUpper(name), strings.ToUpper(m.Name)); {
		case d < least || d == least && len(out) == 0:
			least, out = d, []string{m.Name}
		case d == least:
			out = append(out, m.Name)
		}
	}
	return out
}

// editDistance returns how many bytes must be inserted, removed or replaced to make b of a (Levenshtein's distance).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
