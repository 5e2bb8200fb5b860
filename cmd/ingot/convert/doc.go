// Package convert implements `ingot convert vmetal`, which converts vMetal's NodeProviders with their node types, OSImages,
// MachineConfigTemplates and SSHKeys to objects of Ingot.
//
// Resources that are GPUs become spec.gpu: the model and the number come from labels of the selector, and a layout from the number of
// MIG instances. The vCluster of a NodeClaim becomes a TenantCluster that nodes
// join by vcluster. BareMetalHosts stay as they are, because Ingot reads vMetal's annotations too. The conversion guesses nothing. What vMetal does
// not know, such as the GPU model and what is baked into an image, is left out, so that `ingot validate` reports it as missing.
// What Ingot has no field for is reported.
package convert
