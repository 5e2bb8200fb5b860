// Package step is the small reconcile kit of all controllers.
//
// A reconcile ends in one Outcome, a closed type: Done, Wait, Retry or Stuck. It is mapped to controller-runtime's
// result in one place. A reconcile writes the status once, through Finish, and its events and log lines follow only
// after that write succeeded: whoever reads an event finds the status that it speaks of.
package step
