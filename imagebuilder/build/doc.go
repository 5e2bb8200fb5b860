// Package build makes an image from a recipe: it runs mmdebstrap and the Go compiler, puts the files together and packs the disk.
//
// Nobody has to be root: mmdebstrap works in a user namespace and writes an archive, the files of the recipe are added to the archive's tree in
// memory, and the file systems are written by this project's own code, without mounts. The boot loader is the one that Debian signs, so that the
// image boots with Secure Boot and without.
//
// The same recipe gives the same bytes as long as its repositories have the same packages, which those of a snapshot always have, and the same
// version of Go builds its programs. What packages leave behind that differs each time is removed: keys of the SSH server, the machine's
// identity, logs and caches.
package build
