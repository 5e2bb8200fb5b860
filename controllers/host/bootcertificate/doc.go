// Package bootcertificate keeps the authority and the certificate of the boot service in two Secrets, and gives the certificate to the boot service.
//
// The Secret of the authorities has the keys that sign. The leader alone reads and writes it. The Secret of the boot service has the certificate, its
// key and the trusted authorities; every replica reads it while it runs, so that a change needs no restart. What is issued when is decided by package
// bootca.
package bootcertificate
