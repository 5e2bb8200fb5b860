package cloudinit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"
)

// isScript returns true when a layer is a script.
func isScript(text string) bool { return strings.HasPrefix(text, "#!") }

// scriptFindings returns what prevents a script from running.
func scriptFindings(layer Layer) []Finding {
	first, _, _ := strings.Cut(layer.Text, "\n")
	switch {
	case strings.HasSuffix(first, "\r"):
		return []Finding{{Message: "the first line of the script ends with a carriage return, which the kernel would take for a part of the interpreter's name: remove it"}}
	case !strings.HasPrefix(strings.TrimLeft(first[2:], " \t"), "/"):
		return []Finding{{Message: "the first line of the script must name its interpreter by an absolute path, such as #!/bin/sh"}}
	case !utf8.ValidString(layer.Text):
		return []Finding{{Message: "the script is not UTF-8 text"}}
	}
	return nil
}

// lineLength is the length of base64 lines in MIME messages.
const lineLength = 76

// mimeMessage returns a MIME message with the cloud-config and the users' scripts. cloud-init runs scripts in the order of their file
// names, and runs all of runcmd as a script with the name runcmd. The names of the users' scripts sort before that.
func mimeMessage(config []byte, scripts []Layer) []byte {
	parts := [][]byte{mimePart("text/cloud-config", "cloud-config.yaml", config)}
	for i, s := range scripts {
		parts = append(parts, mimePart("text/x-shellscript", fmt.Sprintf("layer-%02d", i), []byte(s.Text)))
	}
	// The boundary follows from the parts, so that the same parts always give the same message. It cannot occur in base64, which has no
	// dashes.
	boundary := fmt.Sprintf("ingot-%x", sha256.Sum256(bytes.Join(parts, nil)))[:38]
	var out bytes.Buffer
	size := 256
	for _, p := range parts {
		size += len(p) + 64
	}
	out.Grow(size)
	fmt.Fprintf(&out, "Content-Type: multipart/mixed; boundary=\"%s\"\nMIME-Version: 1.0\n\n", boundary)
	for _, p := range parts {
		fmt.Fprintf(&out, "--%s\n%s", boundary, p)
	}
	fmt.Fprintf(&out, "--%s--\n", boundary)
	return out.Bytes()
}

// mimePart returns one part of a MIME message, in base64, which keeps lines of any length and all characters unchanged.
func mimePart(kind, name string, content []byte) []byte {
	var out bytes.Buffer
	size := base64.StdEncoding.EncodedLen(len(content))
	out.Grow(size + size/lineLength + 256)
	fmt.Fprintf(&out, "Content-Type: %s; charset=\"utf-8\"\nMIME-Version: 1.0\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=\"%s\"\n\n", kind, name)
	text := base64.StdEncoding.EncodeToString(content)
	for len(text) > 0 {
		n := min(len(text), lineLength)
		out.WriteString(text[:n])
		out.WriteByte('\n')
		text = text[n:]
	}
	return out.Bytes()
}
