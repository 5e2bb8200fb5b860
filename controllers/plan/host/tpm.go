package host

import (
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// keptProofs are those with which what an agent has reported of its TPM is what later agents must prove.
var keptProofs = []hardware.TPMProof{hardware.TPMListed, hardware.TPMFirstUse, hardware.TPMNone}

// keepTPM keeps what the agent of the attempt has reported of its server's TPM.
func (p *planner) keepTPM() {
	a := p.d.Record.Progress()
	if a == nil || a.Agent == nil || a.TPM == nil || !slices.Contains(keptProofs, hardware.TPMProof(a.TPM.Proof)) {
		return
	}
	p.d.Record.TPM = a.TPM.DeepCopy()
}

// acceptTPMKey resets the failures of an attempt that refused another TPM, when the annotation ingot.dev/tpm-key lists that one. It is not another time that this
// attempt fails for the same reason.
func (p *planner) acceptTPMKey() result {
	w, a := p.d.Record.Wanted, p.d.Record.Progress()
	if w == nil || a == nil || a.TPM == nil || !p.isIdle() || w.Reason != string(hardware.ReasonTPMDiffers) {
		return done
	}
	if key, isValid := hardware.ParseTPMKey(p.Host.TPMKey); isValid && (key == a.TPM.Key || key == hardware.NoTPM && a.TPM.Proof != v1alpha1.TPMProof(hardware.TPMDiffers)) {
		p.d.Record.Failures = 0
	}
	return done
}
