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

// QuerySMI returns what nvidia-smi prints: with --query-gpu the fields asked for, with -q the licence status, and otherwise
// the list of GPUs.
func QuerySMI(gpus []*gpu.GPU, arguments []string, licensed bool) (string, error) {
	if len(gpus) == 0 {
		return "", errors.New("no devices were found")
	}
	var out strings.Builder
	fields, isQuery := option(arguments, "--query-gpu")
	for i, g := range gpus {
		switch {
		case isQuery:
			line, err := queryLine(i, g, strings.Split(fields, ","))
			if err != nil {
				return "", err
			}
			out.WriteString(line + "\n")
		case len(arguments) > 0 && arguments[0] == "-q":
			fmt.Fprintf(&out, "GPU %s\n    Product Name                          : %s\n", g.Address, g.Model.Product)
			if g.Virtual {
				fmt.Fprintf(&out, "    vGPU Software Licensed Product\n        License Status                    : %s\n", licenseStatus(licensed))
			}
		case len(arguments) == 0 || arguments[0] == "-L":
			fmt.Fprintf(&out, "GPU %d: %s (UUID: %s)\n", i, g.Model.Product, g.UUID)
		}
	}
	return out.String(), nil
}

func licenseStatus(licensed bool) string {
	if licensed {
		return "Licensed (Expiry: 2036-1-1 0:0:0 GMT)"
	}
	return "Unlicensed (Unrestricted)"
}

func queryLine(i int, g *gpu.GPU, fields []string) (string, error) {
	var out []string
	for _, field := range fields {
		switch field {
		case "index":
			out = append(out, fmt.Sprint(i))
		case "name":
			out = append(out, g.Model.Product)
		case "uuid":
			out = append(out, g.UUID)
		case "mig.mode.current":
			mode := map[bool]string{true: "Enabled", false: "Disabled"}[g.MIG]
			if !g.HasMIGMode() {
				mode = "[N/A]"
			}
			out = append(out, mode)
		default:
			return "", fmt.Errorf("field %q is not a valid field to query", field)
		}
	}
	return strings.Join(out, ", "), nil
}
