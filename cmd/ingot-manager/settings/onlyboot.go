package settings

import (
	"errors"
	"fmt"
	"slices"
)

// ValidateOnlyBoot returns what makes no sense for a process that is the boot service alone.
func (s Settings) ValidateOnlyBoot() error {
	var errs []error
	if s.Boot.Address == "0" {
		errs = append(errs, errors.New(`boot.address: got "0"; expected HOST:PORT or :PORT, because the boot service is all that --only=boot runs`))
	}
	if slices.Contains(s.Boot.HostNamespaces, "") {
		errs = append(errs, fmt.Errorf("boot.hostNamespaces: got %q; expected names of namespaces, or an empty list for all", s.Boot.HostNamespaces))
	}
	return errors.Join(errs...)
}

// KeyNamespace returns the namespace of the boot key's Secret.
func (s Settings) KeyNamespace() string {
	if s.Boot.KeyNamespace != "" {
		return s.Boot.KeyNamespace
	}
	return s.Namespace
}
