// Package config holds what is applied to a cluster: generated CRDs and RBAC, who may use what, the manager and its webhook,
// alerts and a dashboard, samples. Programs and tests read it from here, so that what is shipped is what was tried.
package config

import "embed"

// Files are the manifests: crd, rbac, policy, webhook, boot, embed-boot, samples.
//
//go:embed crd rbac metal3/rbac policy webhook boot embed-boot samples
var Files embed.FS
