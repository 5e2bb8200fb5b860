package bmc

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

//go:embed personalities.yaml
var personalitiesYAML []byte

// Personality is how a vendor's firmware differs from the Redfish specification. The zero value does not.
type Personality struct {
	// Boot is how the boot override differs.
	Boot BootRules `json:"boot"`
	// Power is how power actions differ.
	Power PowerRules `json:"power"`
	// Wire is how requests, answers and links differ.
	Wire WireRules `json:"wire"`
	// Login is how authentication differs.
	Login LoginRules `json:"login"`
	// ETag is how the BMC uses the ETag of the resource that has the boot override.
	ETag ETag `json:"etag"`
	// HGXBaseboard adds a second, physical and resettable ComputerSystem, HGX_Baseboard_0, and puts NVIDIA's devices into
	// chassis of their own, as NVIDIA's HGX servers have them.
	HGXBaseboard bool `json:"hgxBaseboard"`
	// SecondSystem adds another system that cannot be told from the server's own.
	SecondSystem bool `json:"secondSystem"`
	// GhostSystem names a member of the collection of systems that does not exist; empty: none.
	GhostSystem string `json:"ghostSystem"`
	// SystemListsDevices lists the PCI devices of the server's chassis in the server's system too.
	SystemListsDevices bool `json:"systemListsDevices"`
	// RenumbersNICs gives the server's network interfaces other ids, in another order, at every boot (iLO 6).
	RenumbersNICs bool `json:"renumbersNICs"`
	// MediaUnderSystem puts virtual media under the system and not under the manager.
	MediaUnderSystem bool `json:"mediaUnderSystem"`
	// SecureBoot are the members of the system's resource SecureBoot; nil: the system has none.
	SecureBoot map[string]any `json:"secureBoot"`
	// Media is how virtual media differ.
	Media MediaRules `json:"media"`
	// NoMedia leaves the collection of virtual media empty.
	NoMedia bool `json:"noMedia"`
	// Resources are those of a product; nil: those that follow from the hardware. ProductNamed sets them.
	Resources *Resources `json:"-"`
}

var personalities = sync.OnceValues(func() (map[string]Personality, error) {
	var all map[string]Personality
	if err := yaml.UnmarshalStrict(personalitiesYAML, &all); err != nil {
		return nil, fmt.Errorf("reading the BMCs' personalities: %w", err)
	}
	return all, nil
})

// Personalities returns every personality of the field by its name.
func Personalities() (map[string]Personality, error) {
	all, err := personalities()
	return maps.Clone(all), err
}

// PersonalityNamed returns a personality of the field.
func PersonalityNamed(name string) (Personality, error) {
	all, err := personalities()
	if err != nil {
		return Personality{}, err
	}
	personality, ok := all[name]
	if !ok {
		return Personality{}, fmt.Errorf("no BMC personality %q: expected one of %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	return personality, nil
}
