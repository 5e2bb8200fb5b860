package ramdisk

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The packages that `make boot` downloads are those that the report names.
func TestMakeDownloadsTheFirmwarePackagesThatAreKnown(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^FIRMWARE_PACKAGES := ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no FIRMWARE_PACKAGES")
	}
	got := strings.Fields(strings.ReplaceAll(string(list[1]), "\\\n", " "))
	var want []string
	for _, p := range firmwarePackages {
		want = append(want, p.name)
	}
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("the Makefile has %q, the table %q", got, want)
	}
}
