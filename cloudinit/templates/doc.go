// Package templates renders the users' templates of user data and network data. They are templates of text/template with the functions
// of sprig, like those of vMetal's MachineConfigTemplate.
//
// The same values always give the same bytes, and a template can read nothing but its values. Functions of sprig that read the clock,
// the environment of the controller or the network, or that are random, are left out. So are functions with which a short template
// could fill the memory, or they have a limit. Functions that return the keys or the values of a map return them in a fixed order.
//
// Sprig (Masterminds/sprig/v3) is released rarely; the last release is 3.3.0 of August 2024. Helm uses it too, so the users'
// existing templates work without a change.
package templates
