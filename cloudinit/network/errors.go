package network

import "fmt"

// Invalid is a network that the node cannot have.
type Invalid struct {
	// Field that is wrong: the host's address, network.cidr, links[1].vlan_id.
	Field string
	// Message says why.
	Message string
}

// Error names the field.
func (n *Invalid) Error() string { return n.Field + ": " + n.Message }

func invalid(field, format string, args ...any) error {
	return &Invalid{Field: field, Message: fmt.Sprintf(format, args...)}
}
