// Package gpt reads partition tables and adds a partition to a GUID partition table (UEFI specification, section 5.3).
//
// It works on bytes and never panics on nonsense: what it reads comes from images and from disks that others wrote. It
// exists because the installer must change the table inside the held-back first MiB, before any of it is on the disk;
// the libraries of the field edit a device in place.
package gpt
