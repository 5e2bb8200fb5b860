// Package configdrive writes the file system of a config drive: an ISO 9660 volume labelled config-2 with documents in
// openstack/latest. cloud-init's ConfigDrive data source and Ignition find it by the label
// (https://docs.openstack.org/nova/latest/admin/config-drive.html).
//
// It does not use the usual library (kdomanski/iso9660), because that copies every file into a temporary directory, where secrets must
// not be, and writes no Rock Ridge entries, so that neither modes nor exact names reach the operating system. The tests read the volume
// with that library, with the kernel and with blkid.
package configdrive
