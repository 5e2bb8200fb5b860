// Package operator makes of objects and of Helm values what a tenant's cluster makes of them: the vendors' charts and operators
// become the DaemonSets that they would create, and the labels that they would set on a node.
//
// NVIDIA's GPU operator follows its release 26.7 (controllers/state_manager.go for the labels by workload), its device plugin's
// and DRA driver's charts, and AMD's operator 1.5 with a DeviceConfig. Images and arguments are as far as package software knows
// pods by them.
package operator
