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
	// BootMode is how the firmware treats BootSourceOverrideMode.
	BootMode BootMode `json:"bootMode"`
	// BootTargets are the boot targets that the BMC offers; empty: None, Pxe, Hdd, Cd and UefiHttp.
	BootTargets []string `json:"bootTargets"`
	// ETag is how the BMC uses the ETag of the server's system.
	ETag ETag `json:"etag"`
	// HGXBaseboard adds a second, physical and resettable ComputerSystem, HGX_Baseboard_0, and puts NVIDIA's devices into
	// chassis of their own, as NVIDIA's HGX servers have them.
	HGXBaseboard bool `json:"hgxBaseboard"`
	// SecondSystem adds another system that cannot be told from the server's own.
	SecondSystem bool `json:"secondSystem"`
	// SystemListsDevices lists the PCI devices of the server's chassis in the server's system too.
	SystemListsDevices bool `json:"systemListsDevices"`
	// ResetTypes are the reset types that the BMC offers; empty: On, ForceOff, GracefulShutdown, GracefulRestart,
	// ForceRestart and PushPowerButton.
	ResetTypes []Reset `json:"resetTypes"`
	// ResetActionInfo lists the reset types in an ActionInfo resource and not in the action itself.
	ResetActionInfo bool `json:"resetActionInfo"`
	// RefusesPresentPower makes the BMC answer 409 to a request for the power state that the server has (iDRAC).
	RefusesPresentPower bool `json:"refusesPresentPower"`
	// MediaUnderSystem puts virtual media under the system and not under the manager.
	MediaUnderSystem bool `json:"mediaUnderSystem"`
	// NoSessionLocation leaves the Location header out when a session is made: only the body names the session.
	NoSessionLocation bool `json:"noSessionLocation"`
}

// BootMode is how a BMC treats BootSourceOverrideMode. Empty: the mode can be read and written.
type BootMode string

// Deviating boot modes.
const (
	// BootModeAbsent means that there is no BootSourceOverrideMode, and that sending it is an error (Supermicro).
	BootModeAbsent BootMode = "Absent"
	// BootModeReadOnly means that BootSourceOverrideMode can be read, and that sending it is an error.
	BootModeReadOnly BootMode = "ReadOnly"
)

// ETag is how a BMC uses the ETag of the server's system. Empty: there is none.
type ETag string

// Uses of an ETag.
const (
	// ETagOptional means that If-Match is checked where a request has it.
	ETagOptional ETag = "Optional"
	// ETagRequired means that a change without the current ETag in If-Match is refused.
	ETagRequired ETag = "Required"
	// ETagWeak means that the ETag is handed out weak, required, and compared as a strong one.
	ETagWeak ETag = "Weak"
)

// Reset is a Redfish reset type.
type Reset string

// Reset types. A Machine is asked for the first six only.
const (
	ResetOn               Reset = "On"
	ResetForceOff         Reset = "ForceOff"
	ResetGracefulShutdown Reset = "GracefulShutdown"
	ResetGracefulRestart  Reset = "GracefulRestart"
	ResetForceRestart     Reset = "ForceRestart"
	ResetPushPowerButton  Reset = "PushPowerButton"
	ResetForceOn          Reset = "ForceOn"
	ResetPowerCycle       Reset = "PowerCycle"
)

var (
	defaultBootTargets = []string{"None", "Pxe", "Hdd", "Cd", "UefiHttp"}
	defaultResetTypes  = []Reset{ResetOn, ResetForceOff, ResetGracefulShutdown, ResetGracefulRestart, ResetForceRestart, ResetPushPowerButton}
)

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

func (p Personality) bootTargets() []string {
	if len(p.BootTargets) > 0 {
		return p.BootTargets
	}
	return defaultBootTargets
}

func (p Personality) resetTypes() []Reset {
	if len(p.ResetTypes) > 0 {
		return p.ResetTypes
	}
	return defaultResetTypes
}

// mediaPath is the path of the one virtual media slot.
func (p Personality) mediaPath() string {
	if p.MediaUnderSystem {
		return PathSystem + "/VirtualMedia/Cd"
	}
	return pathManager + "/VirtualMedia/Cd"
}
