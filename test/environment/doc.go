// Package environment starts and stops what the demo and the end-to-end tests run in: the control planes of a management cluster
// and of tenants, a rack of simulated servers, an image server and the manager. It applies manifests to the clusters and reads
// their audit logs.
package environment
