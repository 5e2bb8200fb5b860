package plan

import "fmt"

// Refuse makes a *Refusal with a formatted message.
func Refuse(reason, rule, format string, args ...any) error {
	return &Refusal{Reason: reason, Rule: rule, Message: fmt.Sprintf(format, args...)}
}
