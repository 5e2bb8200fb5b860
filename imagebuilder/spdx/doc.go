// Package spdx writes the list of what an image consists of: Debian's packages, the modules of Go programs, and files, as an SPDX document
// (version 2.3, JSON).
//
// The document says what was found: names, versions, digests and package URLs. Licences are not concluded (NOASSERTION): Debian's are in
// usr/share/doc/*/copyright of the image.
package spdx
