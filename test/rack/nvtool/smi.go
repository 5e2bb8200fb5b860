package nvtool

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/gpu"
)

// RunSMI runs nvidia-smi as far as it changes something: it sets the MIG mode. `nvidia-smi mig` is refused, and all other
// commands change nothing.
func RunSMI(gpus []*gpu.GPU, arguments []string) error {
	if len(gpus) == 0 {
		return errors.New("nvidia-smi: no devices were found")
	}
	if len(arguments) > 0 && arguments[0] == "mig" {
		return errors.New("nvidia-smi mig: instances made by hand are not simulated, nvidia-mig-parted's are")
	}
	mode, found := option(arguments, "-mig", "--multi-instance-gpu")
	if !found {
		return nil
	}
	on, valid := map[string]bool{"1": true, "enabled": true, "0": false, "disabled": false}[strings.ToLower(mode)]
	if !valid {
		return fmt.Errorf("nvidia-smi -mig: invalid value %q", mode)
	}
	chosen, some := option(arguments, "-i", "--id")
	var errs []error
	for i, g := range gpus {
		// "Not Supported. Treating as warning and moving on."
		if some && !isListed(chosen, i, g) || !g.HasMIGMode() {
			continue
		}
		if err := g.SetMIG(on); err != nil {
			errs = append(errs, fmt.Errorf("nvidia-smi -mig %s: %w", mode, err))
		}
	}
	return errors.Join(errs...)
}

// isListed reports whether a list such as "0,3" contains the GPU by number, UUID or bus address. nvidia-smi prints the
// address's domain with eight digits.
func isListed(list string, i int, g *gpu.GPU) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(id string) bool {
		return id == strconv.Itoa(i) || id == g.UUID || strings.HasSuffix(strings.ToLower(id), g.Address)
	})
}

// option returns the value of "NAME VALUE" or "NAME=VALUE".
func option(arguments []string, names ...string) (string, bool) {
	for i, word := range arguments {
		name, value, joined := strings.Cut(word, "=")
		if !slices.Contains(names, name) {
			continue
		}
		if !joined && i+1 < len(arguments) {
			value = arguments[i+1]
		}
		return value, true
	}
	return "", false
}
