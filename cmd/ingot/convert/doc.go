// Package convert is `ingot convert vmetal`: vMetal's NodeProviders with their node types, OSImages, MachineConfigTemplates
// and SSHKeys as Ingot's objects. BareMetalHosts stay as they are: Ingot reads vMetal's annotations too. Nothing is guessed: what vMetal does not say (the GPU model, what
// is baked into an image) is left out, so that `ingot validate` asks for it, and what has no place here is told.
package convert
