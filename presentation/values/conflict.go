package values

import "fmt"

// Conflict is two NodeTypes of one tenant that its software cannot serve together.
type Conflict struct {
	// NodeTypes are the two, in the order of their names.
	NodeTypes [2]string
	// Software that has only one of what both want.
	Software string
	// Message says what each wants, and what to change.
	Message string
}

// Error names both and says what to change.
func (c *Conflict) Error() string {
	return fmt.Sprintf("NodeTypes %s and %s: %s: %s", c.NodeTypes[0], c.NodeTypes[1], c.Software, c.Message)
}
