// Package software holds what the packages of the vendors in tenantsoftware share: the NodeType that software is configured
// for, and the Chart, the Component or the Conflict that results.
package software
