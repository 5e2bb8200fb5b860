// Package documents makes what a Machine's node reads at its first boot, and the claim Secret that hands it to the host.
package documents
