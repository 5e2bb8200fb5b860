// Package simulation simulates rollouts in virtual time. The planner is the real one; the Machines take as long and fail as they
// are configured, and every event is logged as a line. There is no randomness and no clock, so the same configuration
// always gives the same lines.
package simulation
