// Package manifest writes objects of Kubernetes as the vendors' manifests and charts have them, for package values.
package manifest
