// Package properties reads the free-form properties of NodeProvider, NodeType and Machine, of which the nearest wins:
// Machine, then NodeType, then NodeProvider, key by key.
//
// The keys that mean something are vMetal's, so that its users keep theirs, and two of Ingot's own. What vMetal says by
// a property and Ingot by a field is refused with the name of the field, and so is every other key of these domains:
// a misspelt key would be silently ignored otherwise. All other keys are people's own, for their templates.
package properties
