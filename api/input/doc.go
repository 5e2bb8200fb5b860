// Package input bounds what comes from outside before anything is made of it.
//
// What a peer sends (an agent, a BMC, an Ironic, a tenant's cluster, an image server, a file of a user) may be wrong or hostile. Without a bound, a few
// kilobytes become gigabytes or a day of work, and a name becomes a command in somebody's terminal. Adapters read, count and clean what they get with this
// package, so that every peer has the same rules.
package input
