// Package documents renders the documents that a Machine's node reads at its first boot, and makes the claim Secret that brings them
// to the host.
package documents
