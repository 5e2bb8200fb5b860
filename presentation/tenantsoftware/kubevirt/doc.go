// Package kubevirt configures KubeVirt in a tenant's cluster: which host devices virtual machines may have.
package kubevirt
