package lifecycle

import (
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle/facts"
)

// What a Decision depends on; package facts says what each means.
type (
	Facts    = facts.Facts
	Machine  = facts.Machine
	NodeType = facts.NodeType
	Revision = facts.Revision
	Provider = facts.Provider
	Tenant   = facts.Tenant
	Choice   = facts.Choice
	Consumer = facts.Consumer
	Host     = facts.Host
	Record   = facts.Record
	Secret   = facts.Secret
	Node     = facts.Node
	Token    = facts.Token
	Timeouts = facts.Timeouts
)

// DefaultTimeouts are what holds where neither the NodeType nor the configuration says otherwise.
func DefaultTimeouts() Timeouts { return facts.DefaultTimeouts() }
