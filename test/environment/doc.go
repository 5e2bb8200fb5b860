// Package environment is what the demo and the end-to-end tests run in: two control planes, a rack, an image server and the manager, started in order and
// ended in order, and the manifests that are applied to them.
package environment
