// Package tpm has a server prove by its TPM 2.0 that an agent runs on it: what is sealed to the endorsement key of the TPM can be opened by that TPM alone
// (Trusted Platform Module Library, part 1, "Credential Protection").
package tpm
