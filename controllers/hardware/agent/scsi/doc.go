// Package scsi erases SCSI disks by their own commands, and carries the commands of ATA disks.
//
// The commands and data are those of SPC-5 (INQUIRY 6.7, REPORT SUPPORTED OPERATION CODES 6.35, REQUEST SENSE 6.39, sense data 4.4) and SBC-4 (READ
// CAPACITY (16) 5.20, SANITIZE 5.30, sanitize operations 4.11). The kernel's interface is that of the SCSI Generic HOWTO, version 3.
package scsi
