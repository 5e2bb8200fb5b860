package host

import (
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// keepTPM keeps what the last agent of the attempt has reported of its server's TPM, when the attempt has succeeded: until then, later boots compare with the attempt.
//
// Example: a neighbour registers in place of a new server, the server registers too, and the attempt fails because two spoke. If the first key were kept, the
// neighbour would be the server from then on.
func keepTPM(r *v1alpha1.HostRecordStatus) {
	a := r.Progress()
	if a == nil || a.TPM == nil || !hardware.TPMProof(a.TPM.Proof).IsKept() {
		return
	}
	if !slices.ContainsFunc(a.Findings, func(f v1alpha1.HostFinding) bool { return f.Reason == v1alpha1.FindingAnotherAgent }) {
		r.TPM = a.TPM.DeepCopy()
	}
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
