// Package rehearsal plays rollouts with simulated Machines in virtual time: the planner is the real one, the Machines take as
// long and fail as they are told to, and what happens is told line by line. Nothing in it is random and no clock is read,
// so the same play always gives the same story.
package rehearsal
