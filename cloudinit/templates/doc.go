// Package templates renders people's templates of user data and network data: text/template with sprig's functions, as
// vMetal's MachineConfigTemplate has them.
//
// The same values give the same bytes, and a template sees its values only. What of sprig asks the clock, the environment
// of the controller, the network or a source of randomness is left out, and so is what a few letters of a template could
// use to fill the memory. Functions that return the keys or the values of a map return them in order.
//
// Sprig (Masterminds/sprig/v3) is kept up by its authors in passes, one to a few times a year; the last release is 3.3.0
// of August 2024. Helm uses it too, so templates that people have work as they are.
package templates
