// Package join decides how nodes are told to reach a tenant's cluster: which endpoint they are given, and which DNS their pods use.
package join
