// Package step has what every controller needs to end a reconcile.
//
// A reconcile ends in one Outcome: Done, Wait, Retry or Stuck. Outcome.Result maps it to the result of controller-runtime. A reconcile
// writes the status once, by Finish. Its events and log lines follow only after that write succeeded, so that the status that an event
// describes can always be read.
package step
