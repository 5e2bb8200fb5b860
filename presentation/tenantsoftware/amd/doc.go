// Package amd configures AMD's software in a tenant's cluster: the device plugin, the DRA driver and the operator.
package amd
