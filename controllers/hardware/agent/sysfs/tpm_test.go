package sysfs

import (
	"errors"
	"testing"
	"testing/fstest"
)

func TestATPMThatHasNoDeviceIsNotAbsent(t *testing.T) {
	version := func(name, major string) fstest.MapFS {
		return fstest.MapFS{"sys/class/tpm/" + name + "/tpm_version_major": {Data: []byte(major + "\n")}}
	}
	managed := version("tpm0", "2")
	managed["sys/class/tpmrm/tpmrm0/dev"] = &fstest.MapFile{}
	old := version("tpm0", "1")
	old["sys/class/tpm/tpm1/tpm_version_major"] = &fstest.MapFile{Data: []byte("2\n")}
	for want, root := range map[string]fstest.MapFS{"/dev/tpmrm0": managed, "/dev/tpm0": version("tpm0", "2"), "/dev/tpm1": old, "": version("tpm0", "1")} {
		if got, err := FindTPM(root); got != want || err != nil {
			t.Errorf("%q, %v, expected %q", got, err, want)
		}
	}
	if got, err := FindTPM(fstest.MapFS{}); got != "" || err != nil {
		t.Errorf("without a TPM: %q, %v", got, err)
	}
	if _, err := FindTPM(fstest.MapFS{tpmTable: {}}); !errors.Is(err, errNoTPMDevice) {
		t.Errorf("the firmware reports one: %v", err)
	}
}
