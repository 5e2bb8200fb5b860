package hardware

import (
	"cmp"
	"strings"
)

// compareVersions compares two versions of firmware, which have no common form: 2.21.1, U54 v2.10, 28.39.1002 (MT_0000000838), GDC7502Q. It returns
// isComparable false where a number meets letters, because nobody knows then which is higher.
//
// Every character that is neither a letter nor a digit ends a part, and parts are compared one by one: two numbers by their value; two parts of one
// length by their characters, as the names of a drive's firmware are fixed in length and count on in letters (GDC5902Q, GDC5A02Q); others by
// their runs of digits and of letters. A v before a number is left out. A version that has further parts is higher.
func compareVersions(a, b string) (order int, isComparable bool) {
	left, right := versionParts(a), versionParts(b)
	for i := range min(len(left), len(right)) {
		if order, isComparable := compareParts(left[i], right[i]); order != 0 || !isComparable {
			return order, isComparable
		}
	}
	return cmp.Compare(len(left), len(right)), true
}

// versionParts returns the parts of a version in lower case.
func versionParts(version string) []string {
	parts := strings.FieldsFunc(strings.ToLower(version), func(r rune) bool { return !isDigit(r) && !isLetter(r) })
	for i, part := range parts {
		if number, found := strings.CutPrefix(part, "v"); found && number != "" && isDigit(rune(number[0])) {
			parts[i] = number
		}
	}
	return parts
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' }

// compareParts compares two parts of versions.
func compareParts(a, b string) (order int, isComparable bool) {
	left, right := runs(a), runs(b)
	if len(a) == len(b) && len(left)+len(right) > 2 {
		return cmp.Compare(a, b), true
	}
	for i := range min(len(left), len(right)) {
		isNumber := isDigit(rune(left[i][0]))
		if isNumber != isDigit(rune(right[i][0])) {
			return 0, false
		}
		order := cmp.Compare(left[i], right[i])
		if isNumber {
			order = compareNumbers(left[i], right[i])
		}
		if order != 0 {
			return order, true
		}
	}
	return cmp.Compare(len(left), len(right)), true
}

// compareNumbers compares two numbers of any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// runs returns the runs of digits and of letters of a part.
func runs(part string) []string {
	var out []string
	start := 0
	for i := 1; i <= len(part); i++ {
		if i == len(part) || isDigit(rune(part[i])) != isDigit(rune(part[i-1])) {
			out = append(out, part[start:i])
			start = i
		}
	}
	return out
}
