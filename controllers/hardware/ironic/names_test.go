package ironic

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestANameInAnotherCaseIsThatOfOneNodeOrOfNone(t *testing.T) {
	upper, lower, other := node{uuid: "0a", name: "Rack-1"}, node{uuid: "0b", name: "rack-1"}, node{uuid: "0c", name: "Rack-2"}
	listed := newNames(3)
	for _, n := range []node{upper, lower, other} {
		listed.add(n)
	}
	for wanted, want := range map[string]string{"Rack-1": "0a", "rack-1": "0b", "rack-2": "0c", "0A": "0a", "rack-3": ""} {
		if got, err := listed.find(wanted, testHost); err != nil || got.uuid != want {
			t.Errorf("%s: expected the node %q, seen %+v, %v", wanted, want, got, err)
		}
	}
	if got, err := listed.find("RACK-1", testHost); hardware.KindOf(err) != hardware.Conflict || !strings.Contains(err.Error(), "Rack-1 (0a) and rack-1 (0b)") {
		t.Errorf("a name of two nodes is that of %+v, %v", got, err)
	}
}

func TestAHostThatNamesANodeInAnotherCaseIsNotTakenForAnother(t *testing.T) {
	own, twin := node{uuid: "0a", name: "Rack-1", record: record{host: testHost.UID}}, node{uuid: "0b", name: "rack-1"}
	host := testHost
	for name, c := range map[string]struct {
		nodes  []node
		wanted string
		want   hardware.Kind
	}{
		"as it is written":                     {[]node{own, twin}, "Rack-1", ""},
		"in another case, of one node":         {[]node{own}, "rack-1", ""},
		"in the case of another node":          {[]node{own, twin}, "rack-1", hardware.Conflict},
		"in another case than both nodes have": {[]node{own, twin}, "RACK-1", hardware.Conflict},
		"by its UUID":                          {[]node{own, twin}, "0A", ""},
		"by the UUID of another node":          {[]node{own, twin}, "0b", hardware.Conflict},
	} {
		listed := newNames(2)
		for _, n := range c.nodes {
			listed.add(n)
		}
		host.InstallerNode = c.wanted
		if err := listed.conflict(own, host); hardware.KindOf(err) != c.want {
			t.Errorf("%s: expected %q, seen %v", name, c.want, err)
		}
	}
}

func TestTwoNodesThatCarryTheUIDOfOneHostAreAConflict(t *testing.T) {
	host := testHost
	host.FormerUIDs = []string{"former"}
	of := func(uuid, uid string) node { return node{uuid: uuid, name: "node-" + uuid, record: record{host: uid}} }
	for name, c := range map[string]struct {
		nodes []node
		want  string
		kind  hardware.Kind
	}{
		"none":                            {[]node{of("0a", "another")}, "", ""},
		"one":                             {[]node{of("0a", "another"), of("0b", host.UID)}, "0b", ""},
		"one of before a restore":         {[]node{of("0b", "former")}, "0b", ""},
		"two":                             {[]node{of("0a", host.UID), of("0b", host.UID)}, "", hardware.Conflict},
		"one and another of a UID before": {[]node{of("0a", host.UID), of("0b", "former")}, "", hardware.Conflict},
	} {
		listed := marks{}
		for _, n := range c.nodes {
			listed[n.record.host] = append(listed[n.record.host], n)
		}
		got, isFound, err := listed.find(host)
		if hardware.KindOf(err) != c.kind || got.uuid != c.want || isFound != (c.want != "") {
			t.Errorf("%s: %+v, %t, %v", name, got, isFound, err)
		}
		if c.kind != "" && (!strings.Contains(err.Error(), "0a (node-0a)") || !strings.Contains(err.Error(), "0b (node-0b)")) {
			t.Errorf("%s: not both are named: %v", name, err)
		}
		if n := listed.only(host.UID); c.kind != "" && len(listed[host.UID]) > 1 && n.uuid != "" {
			t.Errorf("%s: one of them is taken: %+v", name, n)
		}
	}
}
