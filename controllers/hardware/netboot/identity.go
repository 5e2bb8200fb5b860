package netboot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// bootMACProblem returns why the server that was found is not the host with the boot MAC address; "" when it has that address.
func bootMACProblem(bootMAC string, found hardware.Inventory) string {
	var seen []string
	for _, nic := range found.NICs {
		mac, err := ParseMAC(nic.MAC)
		switch {
		case err != nil:
		case mac == bootMAC:
			return ""
		default:
			seen = append(seen, mac)
		}
	}
	return fmt.Sprintf("the server has no NIC with the boot MAC address %s, its NICs have %s: it is another server, or bootMACAddress is wrong; nothing was written",
		bootMAC, cmp.Or(strings.Join(seen, ", "), "no addresses that could be read"))
}

// identityDifference returns how the server that was found differs from the known hardware of the host; "" when it does not. The serial
// number of the system, the system UUID as an earlier agent read it, and the NICs are compared. What identifies nothing is not compared, and
// a NIC that only the agent sees is no difference, because BMCs leave some out.
func identityDifference(known *hardware.Inventory, found hardware.Inventory) string {
	if known == nil {
		return ""
	}
	var differences []string
	for name, values := range map[string][2]string{
		"serial number": {usableIdentifier(known.SerialNumber), usableIdentifier(found.SerialNumber)},
		// Only an agent reads the SystemUUID of an inventory, so both have the same source and byte order.
		"system UUID": {usableIdentifier(known.SystemUUID), usableIdentifier(found.SystemUUID)},
	} {
		if values[0] != "" && values[1] != "" && !strings.EqualFold(values[0], values[1]) {
			differences = append(differences, fmt.Sprintf("%s expected %q, seen %q", name, values[0], values[1]))
		}
	}
	slices.Sort(differences)
	if missing := missingMACs(known.NICs, found.NICs); len(missing) > 0 {
		differences = append(differences, "known NICs are missing: "+strings.Join(missing, ", "))
	}
	if len(differences) == 0 {
		return ""
	}
	return "the server differs from the known hardware of the host: " + strings.Join(differences, "; ")
}

// missingMACs returns the MAC addresses of the known NICs that were not found.
func missingMACs(known, found []hardware.NIC) []string {
	present := map[string]bool{}
	for _, nic := range found {
		if mac := usableMAC(nic.MAC); mac != "" {
			present[mac] = true
		}
	}
	var missing []string
	for _, nic := range known {
		if mac := usableMAC(nic.MAC); mac != "" && !present[mac] && !slices.Contains(missing, mac) {
			missing = append(missing, mac)
		}
	}
	return missing
}

// mergeRegistered returns the inventory to store for the agent's. The serial number of the BMC is kept where there is one, as it is
// when the host is inspected, so that the next boot of another server differs from it too.
func mergeRegistered(known *hardware.Inventory, found hardware.Inventory) hardware.Inventory {
	if known != nil && usableIdentifier(known.SerialNumber) != "" {
		found.SerialNumber = known.SerialNumber
	}
	return found
}

// usableMAC returns the MAC address when it identifies a NIC. A locally administered address does not: software chose it.
func usableMAC(text string) string {
	mac, err := ParseMAC(text)
	if err != nil || strings.Trim(mac, "0:") == "" || strings.ContainsRune("2367abef", rune(mac[1])) {
		return ""
	}
	return mac
}

// placeholders are what vendors write where they know no serial number or UUID, without white space and punctuation.
var placeholders = []string{
	"tobefilledbyoem", "defaultstring", "systemserialnumber", "chassisserialnumber", "notspecified", "notapplicable", "na", "none", "null",
	"unknown", "empty", "invalid", "default", "serialnumber", "oem", "0123456789", "123456789",
}

// usableIdentifier returns the text without surrounding white space when it identifies a server, and "" for a placeholder.
func usableIdentifier(text string) string {
	text = strings.TrimSpace(text)
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" ./-_\t", r) {
			return -1
		}
		return r
	}, strings.ToLower(text))
	if plain == "" || strings.Trim(plain, plain[:1]) == "" || slices.Contains(placeholders, plain) {
		return ""
	}
	return text
}
