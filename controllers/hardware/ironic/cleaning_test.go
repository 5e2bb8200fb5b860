package ironic

import (
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// valueOf returns what the operations give a field, and whether they give it anything.
func valueOf(t *testing.T, operations nodes.UpdateOpts, path string) (value any, isSet bool) {
	t.Helper()
	for _, operation := range operations {
		body, err := operation.ToNodeUpdateMap()
		if err != nil {
			t.Fatal(err)
		}
		if body["path"] == path {
			value, isSet = body["value"]
		}
	}
	return value, isSet
}

func TestWhatTheAutomatedCleaningOfANodeWasIsKeptAndGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		found    node
		isKept   bool
		wantKept any
		back     node
		isBack   bool
		wantBack any
	}{
		"the default of Ironic": {
			found: node{automatedClean: "null"}, isKept: true, wantKept: "null",
			back: node{automatedClean: "false", record: record{cleaning: "null", isKnown: true}}, isBack: true, wantBack: nil,
		},
		"on": {
			found: node{automatedClean: "true"}, isKept: true, wantKept: "true",
			back: node{automatedClean: "false", record: record{cleaning: "true", isKnown: true}}, isBack: true, wantBack: true,
		},
		"off": {
			found: node{automatedClean: "false"}, isKept: true, wantKept: "false",
			back: node{automatedClean: "false", record: record{cleaning: "false", isKnown: true}},
		},
		"off since an attempt of ours": {
			found: node{automatedClean: "false", record: record{cleaning: "true", isKnown: true}},
			back:  node{automatedClean: "false", record: record{cleaning: "true", isKnown: true}}, isBack: true, wantBack: true,
		},
		"off since an attempt of an earlier version": {
			found: node{automatedClean: "false", record: record{isKnown: true}},
			back:  node{automatedClean: "false", record: record{isKnown: true}}, isBack: true, wantBack: nil,
		},
		"turned on by a person since": {
			found: node{automatedClean: "true", record: record{cleaning: "null", isKnown: true}}, isKept: true, wantKept: "true",
			back: node{automatedClean: "true", record: record{cleaning: "null", isKnown: true}},
		},
	} {
		if kept, isKept := valueOf(t, turningCleaningOff(c.found), "/extra/"+extraCleaning); isKept != c.isKept || kept != c.wantKept {
			t.Errorf("%s: expected %v to be kept, seen %v", name, c.wantKept, kept)
		}
		off, isOff := valueOf(t, turningCleaningOff(c.found), "/automated_clean")
		if isOff != (c.found.automatedClean != "false") || isOff && off != false {
			t.Errorf("%s: the automated cleaning is set to %v", name, off)
		}
		if back, isBack := valueOf(t, restoringCleaning(c.back), "/automated_clean"); isBack != c.isBack || back != c.wantBack {
			t.Errorf("%s: expected %v to be given back, seen %v", name, c.wantBack, back)
		}
	}
}
