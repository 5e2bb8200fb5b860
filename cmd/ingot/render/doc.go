// Package render implements `ingot render`, which renders the documents of a Machine's first boot, and the configuration of a
// tenant's GPU software, from manifests. It needs no cluster. Placeholders stand for secrets and for what only a cluster knows.
package render
