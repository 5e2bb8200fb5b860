// Package render is `ingot render`: the documents that a Machine's first boot would read, from manifests. It asks no cluster;
// secrets, and whatever only a cluster knows, are placeholders that say so.
package render
