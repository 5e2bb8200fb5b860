// Package wellknown holds the well-known names of the vendors' software: resources, node labels, taints, DRA drivers,
// DeviceClasses, feature gates and the words of configuration files. A presentation mode sets them on a node, and
// package tenantsoftware configures the software that reads them; both take them from here, so that they always agree.
package wellknown
