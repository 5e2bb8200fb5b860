package ironic

import (
	"strconv"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Automated cleaning is turned off while a node is a host's, because the attempts of the host say what is erased, and when. Afterwards the node has again what it had.
// Without it: the host is removed, Nova deploys the node for one tenant after the other, and Ironic erases nothing between them.

// What automated_clean of a node may be. Null is the default of Ironic's configuration.
const (
	cleaningOff     = "false"
	cleaningDefault = "null"
)

func cleaningText(automatedClean *bool) string {
	if automatedClean == nil {
		return cleaningDefault
	}
	return strconv.FormatBool(*automatedClean)
}

// turningCleaningOff returns what turns the automated cleaning of the node off and keeps what it was. Of a node on which an earlier version has turned it off, that is
// not known.
func turningCleaningOff(n node) nodes.UpdateOpts {
	if n.automatedClean != cleaningOff {
		return nodes.UpdateOpts{set("/automated_clean", false), set("/extra/"+extraCleaning, n.automatedClean)}
	}
	if n.record.cleaning == "" && !n.record.isKnown {
		return nodes.UpdateOpts{set("/extra/"+extraCleaning, cleaningOff)}
	}
	return nil
}

// restoringCleaning returns what gives the automated cleaning back that the node had, and Ironic's default where that is not known. What a person has turned on
// since stays.
func restoringCleaning(n node) nodes.UpdateOpts {
	operations := nodes.UpdateOpts{set("/extra/"+extraCleaning, "")}
	if n.automatedClean != cleaningOff {
		return operations
	}
	switch n.record.cleaning {
	case cleaningOff:
		return operations
	case "true":
		return append(operations, set("/automated_clean", true))
	default:
		return append(operations, unset("/automated_clean"))
	}
}

// taking returns what a node of a host needs beside its record; nothing where it has that.
func taking(n node, host hardware.Host) nodes.UpdateOpts {
	return append(reserving(n, host), turningCleaningOff(n)...)
}

// unset is an operation that gives a field the value null, for which the library has none. Ironic fails to remove some fields.
type unset string

// ToNodeUpdateMap implements nodes.Patch.
func (path unset) ToNodeUpdateMap() (map[string]any, error) {
	return map[string]any{"op": nodes.AddOp, "path": string(path), "value": nil}, nil
}
