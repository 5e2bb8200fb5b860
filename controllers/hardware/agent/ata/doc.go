// Package ata erases ATA disks by their own commands, which travel in SCSI commands.
//
// The commands and data are those of ACS-4 (IDENTIFY DEVICE 7.13, the SECURITY commands 7.36 to 7.41, SANITIZE DEVICE 7.34, the sanitize operations
// 4.18, the security states 4.19) and of SAT-4 (ATA PASS-THROUGH (16) 12.2.3, ATA Status Return descriptor 12.2.2.7).
package ata
