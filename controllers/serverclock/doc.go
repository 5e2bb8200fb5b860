// Package serverclock is the manager's clock: the time of the management cluster's API server, counted by the manager's monotonic clock.
//
// Every answer of the API server has its time (the Date header, RFC 9110, section 6.6.1). The first one sets the clock; from then on time passes as the
// monotonic clock counts it, and the answers are only compared with it. So a wall clock of the manager's machine that is wrong, or is set, changes
// nothing.
//
// Where an answer and the clock differ by more than MaxDifference, somebody has set the API server's clock, or two API servers disagree. Which one is right
// cannot be known, so the clock goes on, and no time counts as certain (see package watched) until that is over: either the answers agree with the clock
// again, or all of them have agreed with each other for a minute, and then the clock is set to them. The time that is certain begins anew then.
//
// A Keeper writes to a Lease of its own since when the clock is certain, once a minute, and reads it when it begins to lead. So a manager that is restarted
// goes on where the last one was; after a break of more than MaxBreak it begins anew.
package serverclock
