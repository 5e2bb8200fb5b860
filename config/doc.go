// Package config holds what is applied to a cluster: generated CRDs and RBAC, the manager, samples. Programs and tests read
// it from here, so that what is shipped is what was tried.
package config

import "embed"

// Files are the manifests: crd, rbac, samples.
//
//go:embed crd rbac samples
var Files embed.FS
