package conformance_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/test/conformance"
)

func TestTheDocumentHasTheTableOfTheCases(t *testing.T) {
	document, err := os.ReadFile("cases.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := conformance.Table(conformance.Direct(), conformance.Ironic()); !strings.HasSuffix(string(document), table) {
		t.Errorf("cases.md does not end with this table:\n%s", table)
	}
}
