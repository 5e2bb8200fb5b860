package ironic

import (
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// marks has the nodes that carry the UID of a host in their extra, by that UID.
type marks map[string][]node

// only returns the node that alone carries the UID; its uuid is empty when there is none, or more than one.
func (m marks) only(uid string) node {
	if len(m[uid]) != 1 {
		return node{}
	}
	return m[uid][0]
}

// find returns the node that carries the UID of the host, or one that the host had before a restore. Two of them are a conflict. Without it: somebody has made a node
// from the copy of another one, the power-off is confirmed of the wrong server, and the erase goes to it.
func (m marks) find(host hardware.Host) (n node, isFound bool, err error) {
	for _, uid := range append([]string{host.UID}, host.FormerUIDs...) {
		for _, one := range m[uid] {
			if isFound && one.uuid != n.uuid {
				return node{}, false, hardware.Errorf(hardware.Conflict, "find node", host.String(), "Ironic's nodes %s (%s) and %s (%s) both say that they are this host, and nothing is done with either: "+
					"remove %s from the extra of the one that is not its server", n.uuid, n.name, one.uuid, one.name, extraHost)
			}
			n, isFound = one, true
		}
	}
	return n, isFound, nil
}

// names finds the nodes of a list by what people call them: the UUID in any case, the name as it is written, and else the name in another case. No name looks like a
// UUID.
//
// Whether Rack-1 and rack-1 are two names is up to the database of Ironic: for PostgreSQL and SQLite they are, for MySQL they are not.
type names struct {
	// exact has each node by its UUID, in lower case, and by its name.
	exact map[string]node
	// folded has the nodes by their names in lower case.
	folded map[string][]node
}

func newNames(count int) names {
	return names{exact: make(map[string]node, 2*count), folded: make(map[string][]node, count)}
}

func (l names) add(n node) {
	l.exact[strings.ToLower(n.uuid)] = n
	if n.name == "" {
		return
	}
	l.exact[n.name] = n
	folded := strings.ToLower(n.name)
	l.folded[folded] = append(l.folded[folded], n)
}

// find returns the node that the host means by the name; its uuid is empty when there is none. Without the error: of two nodes whose names differ in their case alone
// the one that comes last in the list is taken, and the server of somebody else is installed.
func (l names) find(wanted string, host hardware.Host) (node, error) {
	if n, isExact := l.exact[wanted]; isExact {
		return n, nil
	}
	folded := strings.ToLower(wanted)
	if n, isUUID := l.exact[folded]; isUUID && n.uuid == folded {
		return n, nil
	}
	switch found := l.folded[folded]; len(found) {
	case 0:
		return node{}, nil
	case 1:
		return found[0], nil
	default:
		return node{}, hardware.Errorf(hardware.Conflict, "find node", host.String(), "Ironic has no node with the name %q and %d whose names differ from it in their case alone, such as %s (%s) "+
			"and %s (%s): give the UUID or the name as it is written in the annotation ingot.dev/ironic-node", wanted, len(found), found[0].name, found[0].uuid, found[1].name, found[1].uuid)
	}
}

// conflict refuses a host that names another node than n, the one that carries its record. Without it: the annotation is changed while something is deployed,
// the erase goes to the node that is named now, and the one with the data goes to the next tenant as it is.
func (l names) conflict(n node, host hardware.Host) error {
	wanted := host.InstallerNode
	if wanted == "" || !isRecordOf(n, host) || strings.EqualFold(wanted, n.uuid) || wanted == n.name {
		return nil
	}
	if named, err := l.find(wanted, host); strings.EqualFold(wanted, n.name) && (err != nil || named.uuid == n.uuid) {
		return err
	}
	return hardware.Errorf(hardware.Conflict, "find node", host.String(), "the annotation ingot.dev/ironic-node names %q, and the host is Ironic's node %s (%s): "+
		"correct the annotation, or remove %s from the extra of that node when nothing of the host is on it", wanted, n.uuid, n.name, extraHost)
}
