// Package osimage keeps the OSImages: is the file there, how large is it, and which digest does it have.
//
// A checksum that is the URL of a SHA256SUMS or SHA512SUMS file is resolved once and pinned in status.checksum: the
// same OSImage means the same bytes for ever, also when the file behind the URL is replaced later.
package osimage
