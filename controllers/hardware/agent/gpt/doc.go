// Package gpt reads partition tables and adds a partition to a GUID partition table (UEFI specification, section 5.3).
//
// ReadLayout reads the tables of a disk that is to be erased: it must find every partition, or say that it cannot.
//
// It works on bytes and must not panic on invalid input, because images and disks come from other people. It does not use the usual
// libraries, because they edit a device, and the agent must change the table in the first MiB of the image before that is on the disk.
package gpt
