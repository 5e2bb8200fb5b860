// Package inuse decides what depends on a NodeType, a NodeProvider, an OSImage, a NodeTypeRevision or a NodeTypeRendering, and whether a
// deleted one may go.
package inuse
