// Package plan holds what every presentation mode takes and gives: a Request, and a Plan with what the operating system
// must be told and what the node must then advertise, or a Refusal.
//
// It exists beside package presentation so that the packages of the modes and the table that dispatches to them can
// share these types. Users of presentation import that package alone.
package plan
