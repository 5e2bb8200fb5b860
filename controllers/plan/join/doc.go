// Package join decides how nodes are told to reach a tenant's cluster: which endpoint they are given, which script, and which DNS their pods use.
package join
