package scenario

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"time"
)

func TestWithoutIronicTheDemoSaysWhatToInstallBeforeAnythingStarts(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", "")
	t.Setenv("TMPDIR", dir+"/is-not-there") // nothing can be made there
	err := Run(t.Context(), Options{Servers: ptr.To(6), Speed: DefaultSpeed, Provider: "ironic", Timeout: time.Minute})
	for _, want := range []string{"--provider ironic needs the program ironic", "apt-get install ironic-common"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}
