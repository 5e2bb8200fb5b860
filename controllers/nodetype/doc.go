// Package nodetype keeps the NodeTypes: it says whether a NodeType can make nodes at all, before a machine is touched;
// counts hosts and Machines; claims the provider's host namespace; and makes the NodeTypeRevision of what the NodeType
// says now.
package nodetype
