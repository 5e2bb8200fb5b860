// Package dhcp answers the DHCP requests of known hosts: which program they boot, and, where there is no other DHCP server, which address they
// have.
//
// Beside an existing server it is a proxy (Intel's PXE specification 2.1, section 2.2.3): it offers a boot program and no address, on port 67,
// and repeats it on port 4011. Alone, it leases addresses of a range. A MAC address that is no host's gets no answer in either mode, so that
// the service may run on a segment with other machines.
//
// # Stages
//
// A server asks up to four times in one boot, and each time gets what the stage can use:
//
//	who asks                        how it is known                       gets
//	firmware, PXE                   client architecture 0, 6, 7, 9, 11    iPXE's program by TFTP
//	firmware, UEFI HTTP boot        architecture 15, 16, 18, 19           the URL of iPXE's program, or of the unified kernel image
//	iPXE                            user class "iPXE"                     the URL of its boot document
//	agent, operating system         none of these                         an address, and nothing to boot
//
// Architectures are those of RFC 4578 and the IANA's registry of processor architecture types.
package dhcp
