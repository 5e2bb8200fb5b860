// Package hardware defines the two ports through which Ingot touches metal: BMC, a server's management
// controller, and Installer, whatever puts an image on a server's disk.
//
// Only values cross these ports: no Kubernetes object, no vendor type. Every call is idempotent, is keyed by host and
// attempt, and returns at once; long work is observed, never awaited. Failures are *Error with one of the closed
// set of kinds, so that a caller decides by kind and never by text.
//
// Adapters live in the packages below: redfish (BMC), direct (Installer made of a BMC, the boot service of netboot
// and the agent), and the suite every Installer passes, conformance.
package hardware
