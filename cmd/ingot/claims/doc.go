// Package claims implements `ingot claims`, which shows who holds the devices of a shared cluster: from the claim over the node to the host.
package claims
