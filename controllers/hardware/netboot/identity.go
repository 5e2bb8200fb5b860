package netboot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/identity"
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
// number of the system, the system UUID as an earlier agent read it, and the NICs are compared. What is known and not found is a difference: whoever passes for the
// agent leaves out what it does not know. The serial number that only a BMC tells, of a board whose DMI has none, is none where the UUID is the same. A NIC that only
// the agent sees is no difference, because BMCs leave some out.
func identityDifference(known *hardware.Inventory, found hardware.Inventory) string {
	if known == nil {
		return ""
	}
	var differences []string
	// Only an agent reads the SystemUUID of an inventory, so both have the same source and byte order.
	knownUUID, foundUUID := identity.SystemUUID(known.SystemUUID), identity.SystemUUID(found.SystemUUID)
	if knownUUID != "" && knownUUID != foundUUID {
		differences = append(differences, fmt.Sprintf("system UUID expected %q, seen %q", strings.TrimSpace(known.SystemUUID), strings.TrimSpace(found.SystemUUID)))
	}
	knownSerial, foundSerial := identity.SerialNumber(known.SerialNumber), identity.SerialNumber(found.SerialNumber)
	isSameUUID := knownUUID != "" && knownUUID == foundUUID
	if knownSerial != "" && knownSerial != foundSerial && (foundSerial != "" || !isSameUUID) {
		differences = append(differences, fmt.Sprintf("serial number expected %q, seen %q", strings.TrimSpace(known.SerialNumber), strings.TrimSpace(found.SerialNumber)))
	}
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
		if mac := identity.MAC(nic.MAC); mac != "" {
			present[mac] = true
		}
	}
	var missing []string
	for _, nic := range known {
		if mac := identity.MAC(nic.MAC); mac != "" && !present[mac] && !slices.Contains(missing, mac) {
			missing = append(missing, mac)
		}
	}
	return missing
}

// mergeRegistered returns the inventory to store for the agent's. What an agent cannot read, or could not, is what is known already: unknown to the agent
// is not nothing. The serial number of the BMC is kept where there is one, as it is when the host is inspected, so that the next boot of another server
// differs from it too.
func mergeRegistered(known *hardware.Inventory, found hardware.Inventory) hardware.Inventory {
	if known == nil {
		return found
	}
	found.SecureBoot, found.BMCVersion = known.SecureBoot, known.BMCVersion // no agent can read them
	if identity.SerialNumber(known.SerialNumber) != "" {
		found.SerialNumber = known.SerialNumber
	}
	found.Manufacturer, found.Model = cmp.Or(found.Manufacturer, known.Manufacturer), cmp.Or(found.Model, known.Model)
	found.BIOSVersion = cmp.Or(found.BIOSVersion, known.BIOSVersion)
	found.Architecture, found.CPUModel = cmp.Or(found.Architecture, known.Architecture), cmp.Or(found.CPUModel, known.CPUModel)
	found.CPUThreads, found.MemoryBytes = cmp.Or(found.CPUThreads, known.CPUThreads), cmp.Or(found.MemoryBytes, known.MemoryBytes)
	return found
}
