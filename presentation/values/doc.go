// Package values says what the vendors' software in a tenant cluster must be told so that it agrees with the tenant's
// NodeTypes: as values for the vendors' Helm charts (Charts), or as the plain objects that those charts would make (Manifests).
package values
