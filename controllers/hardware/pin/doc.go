// Package pin verifies the certificate of the boot service by the digest of its authority's public key, which a server has on its kernel command line.
//
// A server that boots knows no authority, and the boot service's address may be any. So the name in the certificate is not compared: the authority
// signs certificates of boot services alone. What must hold: the chain that the boot service sends has an authority with a pinned key, and that one
// has signed the certificate, for servers, for this time.
package pin
