// Package remainingnode is the controller that deletes the Nodes that a release had to leave behind in a tenant's cluster.
//
// HostRecord.spec.remainingNodes names them. When their TenantCluster can be used again, controllers/plan/lifecycle decides whether the Node
// is still there and is the one that remained. It is deleted under its uid, and the entry is removed after that. Nothing else in a
// HostRecord is changed.
package remainingnode
