package firstrack

import (
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"testing"

	"github.com/ingot-dev/ingot/test/kubelet"
	"github.com/ingot-dev/ingot/test/vm/lab"
)

func TestMain(m *testing.M) {
	kubelet.Main()
	log.SetLogger(logr.Discard())
	lab.Main(m)
}
