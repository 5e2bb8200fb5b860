package fleet

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

// tpmText says by which key the agents of a host prove that they run on it, and why that is trusted; empty: Ingot's agent does not run there.
func tpmText(h placement.HostFacts) string {
	if h.Record == nil {
		return ""
	}
	known := inventory.KnownTPM(h.Host.Annotations[v1alpha1.AnnotationTPMKey], &h.Record.Status)
	text := cmp.Or(hardware.ShortTPMKey(known.Key), "unknown")
	seen := inventory.HardwareTPM(h.Record.Status.TPM)
	switch {
	case known.IsListed && cmp.Or(seen.Key, hardware.NoTPM) == known.Key && seen.Proof != "":
		return text + " listed"
	case known.IsListed:
		return text + " listed, not seen"
	case seen.Key != "":
		return text + " first use"
	case seen.Proof == hardware.TPMNone:
		return hardware.NoTPM
	}
	return text
}

// annotate begins the command that sets an annotation of the host.
func (d Diagnosis) annotate() string {
	return "kubectl annotate --overwrite bmh -n " + d.Host.Namespace + " " + d.Host.Name + " "
}

// tpmStep is what a person can do when another TPM than the server's has answered.
func (d Diagnosis) tpmStep() string {
	seen := hardware.TPM{}
	if d.Progress != nil {
		seen = inventory.HardwareTPM(d.Progress.TPM)
	}
	return "look whether another server answered, and at the TPM in the firmware; if the board was replaced, accept what answered: " + d.annotate() + v1alpha1.AnnotationTPMKey + "=" + cmp.Or(seen.Key, hardware.NoTPM)
}

// writeTPM writes what a TPM does not prove, and why.
func (d Diagnosis) writeTPM(b *strings.Builder, seen hardware.TPM) {
	switch {
	case seen.Proof == hardware.TPMFailed:
		fmt.Fprintf(b, "  tpm        %s\n", seen.Error)
	case seen.Proof == hardware.TPMUnlisted && d.Host != nil:
		fmt.Fprintf(b, "  tpm        its key is not trusted, because the host has had a tenant; if it is the server's: %s%s=%s\n", d.annotate(), v1alpha1.AnnotationTPMKey, seen.Key)
	}
}
