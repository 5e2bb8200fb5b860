// Package fragment checks a user's members of KubeletConfiguration: against Kubernetes' own types, and against the release of kubelet that reads them.
package fragment
