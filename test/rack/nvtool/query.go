package nvtool

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/gpu"
)

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
