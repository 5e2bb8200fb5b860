// Package stage is what the demo stands on: two control planes, a rack, an image server and the manager, started in order and
// ended in order, and the manifests that are applied to them.
package stage
