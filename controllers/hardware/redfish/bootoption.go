package redfish

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// bootOption is a BootOption (DSP0268).
type bootOption struct {
	ID        string `json:"Id"`
	Reference string `json:"BootOptionReference"`
	// Alias is the boot source, by the names of BootSourceOverrideTarget.
	Alias          string
	Name           string
	DisplayName    string
	UefiDevicePath string
	IsEnabled      *bool `json:"BootOptionEnabled"`
}

// readBootOptions reads the boot options of the system; none when it has none. An entry of the order may then tell by its own name what it is.
func (c *conn) readBootOptions(place bootPlace) ([]bootOption, error) {
	system, settings := place.objects()
	var link schemas.Link
	for _, o := range []*bootObject{system, settings} {
		if o != nil && link == "" {
			_ = json.Unmarshal(o.boot[memberOptions], &link) // one that is no link is none
		}
	}
	if !strings.HasPrefix(link.String(), "/") {
		return nil, nil
	}
	links, err := c.collectionMembers(link.String())
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var options []bootOption
	for _, uri := range links[:min(len(links), maxBootOptions)] {
		raw, _, err := readRaw(c.api, uri)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var option bootOption
		if err := c.decode(uri, raw, &option); err != nil {
			return nil, err
		}
		options = append(options, option)
	}
	return options, nil
}

// Words of boot options whose alias does not tell the source. In a UEFI device path (UEFI specification 2.10, 10.3) MAC and IPv4 are a NIC, and Uri is one for
// HTTP boot.
var (
	httpWords    = regexp.MustCompile(`(?i)http|uri\(`)
	networkWords = regexp.MustCompile(`(?i)pxe|mac\(|ipv[46]|\bnic\b|\bnic\.|network|ethernet|\blan\b`)
	mediaWords   = regexp.MustCompile(`(?i)virtual.{0,12}(cd|dvd|media|optical)|\bcd\b|cd[-/ ]?rom|\bdvd\b|cdrom\(|optical`)
	diskWords    = regexp.MustCompile(`(?i)\bhdd?\b|hd\(|nvme|sata|\bssd\b|hard.?d(isk|rive)|disk`)
)

// source returns what the option boots from; "" when that cannot be told.
func (o bootOption) source() hardware.BootSource {
	for _, source := range []hardware.BootSource{hardware.BootNetwork, hardware.BootDisk, hardware.BootMedia, hardware.BootPinned} {
		if slices.ContainsFunc(bootTargets[source], func(target string) bool { return strings.EqualFold(target, o.Alias) }) {
			return source
		}
	}
	words := strings.Join([]string{o.Reference, o.ID, o.Name, o.DisplayName, o.UefiDevicePath}, " ")
	switch {
	case httpWords.MatchString(words):
		return hardware.BootPinned
	case networkWords.MatchString(words):
		return hardware.BootNetwork
	case mediaWords.MatchString(words):
		return hardware.BootMedia
	case diskWords.MatchString(words):
		return hardware.BootDisk
	}
	return ""
}

// optionOf returns the option that an entry of the boot order means. An entry without one has its own name only.
func optionOf(entry string, options []bootOption) bootOption {
	for _, option := range options {
		if option.Reference == entry || option.Reference == "" && option.ID == entry {
			return option
		}
	}
	return bootOption{Reference: entry, Alias: entry}
}

// entriesOf returns the entries of the order that boot from the source, in their order, then those that are no part of it yet. Firmware skips an option that is
// disabled.
func (o *bootOrder) entriesOf(source hardware.BootSource, options []bootOption) []string {
	var found []string
	add := func(entry string, option bootOption) {
		if isEnabled := option.IsEnabled == nil || *option.IsEnabled; isEnabled && option.source() == source && !slices.Contains(found, entry) {
			found = append(found, entry)
		}
	}
	for _, entry := range o.entries {
		add(entry, optionOf(entry, options))
	}
	for _, option := range options {
		if o.member == memberOrder && option.Reference != "" {
			add(option.Reference, option)
		}
	}
	return found
}

// maxNamedOptions is how many boot options an error names.
const maxNamedOptions = 8

// describeOptions names the entries of a boot order.
func describeOptions(entries []string, options []bootOption) string {
	var names []string
	for _, entry := range entries[:min(len(entries), maxNamedOptions)] {
		option := optionOf(entry, options)
		name := entry
		if option.DisplayName != "" {
			name += " (" + option.DisplayName + ")"
		}
		if option.IsEnabled != nil && !*option.IsEnabled {
			name += " disabled"
		}
		names = append(names, name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}
