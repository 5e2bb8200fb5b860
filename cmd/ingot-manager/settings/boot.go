package settings

import (
	"errors"
	"fmt"
	"slices"
)

// ValidateBoot returns what is missing for a process that serves boots, and what makes no sense for it.
func (s Settings) ValidateBoot() error {
	var errs []error
	if s.Boot.URL == "" {
		errs = append(errs, errors.New("boot.url: expected the URL where servers reach boot.address, such as http://10.20.0.2:8090"))
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
