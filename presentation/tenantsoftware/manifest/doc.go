// Package manifest builds the Kubernetes objects, and the values of Helm charts, that install the vendors' software.
package manifest
