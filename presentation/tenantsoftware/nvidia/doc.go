// Package nvidia configures NVIDIA's software in a tenant's cluster: the device plugins, the DRA driver and the operator.
package nvidia
