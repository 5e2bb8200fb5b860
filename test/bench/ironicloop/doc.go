// Package ironicloop deploys nodes of an Ironic by gophercloud alone, as the measure of what Ironic itself takes: it lists the nodes at an interval, and requests
// of each what its provision state needs next, of several nodes at the same time. It knows nothing of tenants, claims or restarts.
//
// A request is decided by a list that began after the node's last request had ended. The lists go on while requests are made, so that no node waits for another one's.
package ironicloop
