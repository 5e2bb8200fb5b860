package step

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/ingot-dev/ingot/api/input"
)

// MaxNote is the API server's limit on an event's note, in bytes.
const MaxNote = 1024

// recorder publishes events whose notes are one line that can be read.
type recorder struct{ events.EventRecorder }

// NewRecorder returns a recorder that makes each note an input.Line, because notes quote names, versions and errors of peers.
func NewRecorder(to events.EventRecorder) events.EventRecorder { return recorder{to} }

// Eventf implements events.EventRecorder.
func (r recorder) Eventf(regarding, related runtime.Object, typ, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, typ, reason, action, "%s", input.Line(fmt.Sprintf(note, args...), MaxNote))
}
