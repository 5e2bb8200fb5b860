package sysfs

import (
	"errors"
	"io/fs"
	"strings"
)

// tpmTable is the table with which firmware reports a TPM 2.0 (TCG ACPI Specification).
const tpmTable = "sys/firmware/acpi/tables/TPM2"

var errNoTPMDevice = errors.New("the firmware reports a TPM 2.0, and the kernel has no device for it: look at the kernel's messages")

// FindTPM returns the device of the TPM 2.0, the one of the kernel's resource manager where there is one. It is empty where the server has no TPM 2.0. One that the
// firmware reports and the kernel has no device for is an error: it is not absent.
func FindTPM(root fs.FS) (string, error) {
	for _, name := range listNames(root, "sys/class/tpm") {
		if readAttribute(root, "sys/class/tpm/"+name+"/tpm_version_major") != "2" {
			continue
		}
		managed := "tpmrm" + strings.TrimPrefix(name, "tpm")
		if _, err := fs.Stat(root, "sys/class/tpmrm/"+managed); err == nil {
			name = managed
		}
		return "/dev/" + name, nil
	}
	if _, err := fs.Stat(root, tpmTable); err == nil {
		return "", errNoTPMDevice
	}
	return "", nil
}
