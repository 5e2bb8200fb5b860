// Package leasebook keeps in ConfigMaps which address of a range each known host has, so that every boot service leases the same ones.
//
// There is one ConfigMap for each range, in the manager's own namespace. It is written under an optimistic lock, and once for all hosts that have no
// address yet: when a rack is powered on for the first time, its hundreds of servers cost one write. While the API server does not answer, hosts that had an
// address when it was last read keep it.
package leasebook
