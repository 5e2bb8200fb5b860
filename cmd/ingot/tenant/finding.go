package tenant

import (
	"fmt"
	"io"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// level says what a finding asks for.
type level string

const (
	fine level = "ok"
	// note: worth knowing, or not to be found out.
	note level = "note"
	// mend: nodes would not join, or would not be admitted.
	mend level = "mend"
)

// finding is the outcome of one check.
type finding struct {
	level level
	topic string
	text  string
}

// report collects findings and what the tenant has to apply because of them.
type report struct {
	findings []finding
	// grants are for the tenant's cluster.
	grants []cli.Object
}

func (r *report) add(l level, topic, format string, args ...any) {
	r.findings = append(r.findings, finding{l, topic, fmt.Sprintf(format, args...)})
}

// unmended counts what must be mended.
func (r *report) unmended() int {
	n := 0
	for _, f := range r.findings {
		if f.level == mend {
			n++
		}
	}
	return n
}

func (r *report) print(w io.Writer) {
	for _, f := range r.findings {
		fmt.Fprintf(w, "%-5s %s: %s\n", f.level, f.topic, f.text)
	}
}
