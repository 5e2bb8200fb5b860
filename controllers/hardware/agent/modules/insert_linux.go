package modules

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Insert loads the module in the file into the running kernel. Parameters are "NAME=VALUE ..."; the kernel itself does
// not apply those of its command line (MODULE.NAME=VALUE) to modules that are files.
func Insert(file, parameters string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), parameters, 0); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return fs.ErrExist
		}
		return &fs.PathError{Op: "load", Path: file, Err: err}
	}
	return nil
}

// Release returns the release of the running kernel.
func Release() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(name.Release[:]), nil
}
