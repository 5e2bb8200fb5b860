// Package event is the event that a planner decides on and a controller publishes.
package event

import corev1 "k8s.io/api/core/v1"

// Event says what happened to an object, for the people who look after it. It is published after the status that it refers to is
// written.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is the reason of the condition that changed, or another word in UpperCamelCase.
	Reason string
	// Action is what the controller did or tried: Claim, Erase, Validate.
	Action string
	// Message is for people.
	Message string
}

// Normal returns an event of type Normal.
func Normal(reason, action, message string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Message: message}
}

// Warning returns an event of type Warning.
func Warning(reason, action, message string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Action: action, Message: message}
}

// New returns an event of type Warning if isWarning, else of type Normal.
func New(isWarning bool, reason, action, message string) Event {
	if isWarning {
		return Warning(reason, action, message)
	}
	return Normal(reason, action, message)
}
