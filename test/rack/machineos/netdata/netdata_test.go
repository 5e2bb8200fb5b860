package netdata

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const rendered = "../../../../cloudinit/testdata/"

func documents(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(rendered + "*.network_data.json")
	if err != nil || len(names) == 0 {
		t.Fatal("no documents", err)
	}
	out := map[string][]byte{}
	for _, name := range names {
		if out[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestRenderedNetworkDataIsTaken(t *testing.T) {
	for name, text := range documents(t) {
		network, err := Parse(text, nil)
		if err != nil || len(network.Links) == 0 || len(network.Networks) == 0 {
			t.Errorf("%s: %+v, %v", name, network, err)
		}
		var macs []string
		for _, link := range network.Links {
			macs = append(macs, strings.ToUpper(link.MAC))
		}
		if _, err := Parse(text, macs); err != nil {
			t.Errorf("%s on the machine that it is for: %v", name, err)
		}
		if _, err := Parse(text, []string{"02:00:00:00:00:01"}); !errors.Is(err, ErrNetworkData) {
			t.Errorf("%s on another machine: %v", name, err)
		}
	}
	bonds, err := Parse(documents(t)["described.network_data.json"], nil)
	if want := []string{"10.20.5.17", "10.30.0.17"}; err != nil || !slices.Equal(bonds.Addresses(), want) {
		t.Errorf("addresses %v, want %v: %v", bonds.Addresses(), want, err)
	}
}

func TestNetworkDataThatCloudInitRefusesIsAnError(t *testing.T) {
	text := string(documents(t)["described.network_data.json"])
	for sentence, change := range map[string][2]string{
		"no JSON":                {"{", ""},
		"another shape":          {`"vlan_id": 120`, `"vlan_id": "vlan"`},
		"a type that is none":    {`"type": "phy"`, `"type": "physical"`},
		"a bond of nothing":      {"        \"eno2\"", "        \"eno3\""},
		"a VLAN of nothing":      {`"vlan_link": "bond0"`, `"vlan_link": "bond1"`},
		"a network on nothing":   {`"link": "bond0.120"`, `"link": "bond0.121"`},
		"an address that's none": {"10.30.0.17/24", "10.30.0.257/24"},
	} {
		broken := strings.Replace(text, change[0], change[1], 1)
		if network, err := Parse([]byte(broken), nil); broken == text || !errors.Is(err, ErrNetworkData) {
			t.Errorf("%s: %+v, %v", sentence, network, err)
		}
	}
	if network, err := Parse(nil, nil); err != nil || len(network.Links) > 0 {
		t.Errorf("no network data: %+v, %v", network, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range documents(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := Parse(text, nil); err != nil && !errors.Is(err, ErrNetworkData) {
			t.Error(err)
		}
	})
}
