package discover

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
)

// maxText is how much of a text from a service is shown.
const maxText = 200

// clean returns a text from the wire without what a terminal or a table would take for a command. Without it: a service sends a line break in
// its model, and the rest of the model is a line of the table, with an address and a password file of its choice.
func clean(text string) string {
	return strings.Join(strings.Fields(input.Line(text, maxText)), " ")
}

// table writes the table that `ingot host import` reads.
type table struct {
	username     string
	passwordFile string
	bootNIC      string
}

// write writes one line for each BMC, below a comment that says what it is and what is missing.
func (t table) write(out io.Writer, found []service) error {
	lines := csv.NewWriter(out)
	if err := lines.Write([]string{"name", "bmc address", "boot mac", "user", "password file"}); err != nil {
		return err
	}
	for _, s := range found {
		lines.Flush()
		mac, problem := "", "boot mac: not known without a login: give --username"
		switch {
		case s.isRead:
			mac, problem = bootMAC(s.inventory.NICs, t.bootNIC)
		case s.problem != "":
			problem = "boot mac: not known, see above"
		}
		for _, comment := range []string{description(s), s.problem, problem} {
			if comment == "" {
				continue
			}
			if _, err := fmt.Fprintf(out, "# %s: %s\n", s.at, clean(comment)); err != nil {
				return err
			}
		}
		if err := lines.Write([]string{hostName(s), bmcAddress(s), clean(mac), t.username, t.passwordFile}); err != nil {
			return err
		}
	}
	lines.Flush()
	return lines.Error()
}

// hostName returns a name that follows from the address alone, so that it is the same whenever the range is looked at.
func hostName(s service) string {
	name := "host-" + strings.NewReplacer(".", "-", ":", "-").Replace(s.at.Addr().StringExpanded())
	if s.at.Port() != defaultPort {
		name += fmt.Sprintf("-%d", s.at.Port())
	}
	return name
}

// bmcAddress returns the address as Metal3 writes it.
func bmcAddress(s service) string {
	if s.answer.Scheme == "http" {
		return "redfish+http://" + hostAndPort(s.at, "http")
	}
	return "redfish://" + hostAndPort(s.at, "https")
}

// description returns what is known of the server.
func description(s service) string {
	root := s.answer.Root
	parts := []string{strings.TrimSpace(root.Vendor + " " + root.Product)}
	if s.isRead {
		i := s.inventory
		parts = []string{strings.TrimSpace(i.Manufacturer + " " + i.Model)}
		if i.SerialNumber != "" {
			parts = append(parts, "serial number "+i.SerialNumber)
		}
		parts = append(parts, gpuText(s))
	}
	if root.RedfishVersion != "" {
		parts = append(parts, "Redfish "+root.RedfishVersion)
	}
	if root.UUID != "" {
		parts = append(parts, "BMC "+root.UUID)
	}
	for _, at := range s.also {
		parts = append(parts, "also at "+at.String())
	}
	text := strings.Join(parts, ", ")
	return strings.TrimPrefix(text, ", ")
}

// gpuText returns the GPUs that the BMC reports.
func gpuText(s service) string {
	host := inventory.HostInventory(s.inventory, nil)
	if !host.IsGPUCountKnown() {
		return "GPUs not known to the BMC"
	}
	var parts []string
	for _, g := range host.GPUs {
		name := g.Model
		if name == "" {
			name = g.VendorID + ":" + g.DeviceID
		}
		parts = append(parts, fmt.Sprintf("%d x %s", g.Count, name))
	}
	if len(parts) == 0 {
		return "no GPU"
	}
	return strings.Join(parts, ", ")
}
