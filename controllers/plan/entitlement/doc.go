// Package entitlement turns an Entitlement into the objects of the shared cluster that enforce it.
//
// A class of an Entitlement becomes a DeviceClass whose selector follows from the promise of a NodeType: driver, type, profile, product, memory and
// the other attributes that the NodeType's nodes must publish, without the version of the GPU driver, which a rollout changes. A class of kind
// Resource has no DeviceClass.
//
// For each tenant there are two ValidatingAdmissionPolicies, for claims and for pods, with a binding each. Hiding a DeviceClass is no boundary: any
// namespace may name it. So the policies refuse every name outside the Entitlement, in all places where one can stand. A change of an object that
// leaves its spec as it is passes, because a claim keeps running after its class was taken away, and its finalizer must come off in the end.
//
// A ResourceQuota in each namespace limits how many devices a class gives there.
package entitlement
