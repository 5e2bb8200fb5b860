// Package configdrive makes the file system of a config drive: an ISO 9660 volume labelled config-2 with the documents
// under openstack/latest, which is what cloud-init's ConfigDrive source and Ignition look for by label
// (https://docs.openstack.org/nova/latest/admin/config-drive.html).
//
// It has a writer of its own because the library of the field for it (kdomanski/iso9660) stages every file in a
// temporary folder, which is no place for secrets, and writes no Rock Ridge entries, so neither modes nor exact names
// reach the operating system. Its reader is what the tests read the volume with, beside the kernel's and blkid.
package configdrive
