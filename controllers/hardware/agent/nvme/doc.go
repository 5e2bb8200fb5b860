// Package nvme erases NVMe disks by the commands of their own controllers.
//
// The commands and data structures are those of the NVM Express Base Specification, revision 2.0: Identify (section 5.17), Get Log Page
// (5.16), Format NVM (5.14, of the NVM Command Set) and Sanitize (5.24).
package nvme
