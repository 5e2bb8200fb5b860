// Package osimage is the controller of OSImages. It checks whether the image file exists and reports its size and digest.
//
// A checksum that is the URL of a SHA256SUMS or SHA512SUMS file is resolved once and pinned in status.checksum. An OSImage therefore
// always means the same bytes, also when the file at the URL is replaced later.
package osimage
