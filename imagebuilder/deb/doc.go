// Package deb unpacks Debian packages: an ar archive whose member data.tar, compressed with xz, zstd or gzip, holds the files.
//
// The format is described in deb(5).
package deb
