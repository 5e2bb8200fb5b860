package osimage

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// The forms in which checksum files are found: sha256sum's, BSD's (sha256 --tag, openssl dgst), and a lone digest.
var (
	gnuLine = regexp.MustCompile(`^([0-9A-Fa-f]+) [ *](.+)$`)
	bsdLine = regexp.MustCompile(`^([A-Za-z0-9-]+) ?\((.+)\) ?= ?([0-9A-Fa-f]+)$`)
	lone    = regexp.MustCompile(`^\s*([0-9A-Fa-f]{64}|[0-9A-Fa-f]{128})\s*$`)
)

// findDigest finds the digest of the file name: sha256:HEX or sha512:HEX, the stronger where both are given. found
// tells whether any line is for that file; with digest empty no line has a digest of a known kind.
func findDigest(content, name string) (digest string, found bool) {
	if match := lone.FindStringSubmatch(content); match != nil {
		return typed("", match[1]), true
	}
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\r\n")
		var algorithm, sum, file string
		if match := bsdLine.FindStringSubmatch(line); match != nil {
			algorithm, file, sum = match[1], match[2], match[3]
		} else if match := gnuLine.FindStringSubmatch(line); match != nil {
			sum, file = match[1], match[2]
		}
		if file == "" || path.Base(file) != name {
			continue
		}
		found = true
		if candidate := typed(algorithm, sum); len(candidate) > len(digest) {
			digest = candidate
		}
	}
	return digest, found
}

// typed puts the kind before a digest; empty when the length does not fit, or another algorithm is named.
func typed(algorithm, sum string) string {
	sum, algorithm = strings.ToLower(sum), strings.ReplaceAll(strings.ToLower(algorithm), "-", "")
	switch {
	case len(sum) == 64 && slices.Contains([]string{"", "sha256", "sha2256"}, algorithm):
		return "sha256:" + sum
	case len(sum) == 128 && slices.Contains([]string{"", "sha512", "sha2512"}, algorithm):
		return "sha512:" + sum
	}
	return ""
}
