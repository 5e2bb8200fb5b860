package inventory

import (
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// KnownTPM returns what is known of the TPM of a host: what the annotation ingot.dev/tpm-key lists or, where there is none, what is kept of an agent's report. A value
// that is no fingerprint is the key of no server.
//
// The first key is trusted while nobody can have left anything on the disks. Without that: a neighbour answers for a server that is to be erased before its key is
// known, and its own key proves from then on that it is that server.
func KnownTPM(listed string, status *v1alpha1.HostRecordStatus) hardware.KnownTPM {
	if listed != "" {
		key, isValid := hardware.ParseTPMKey(listed)
		if !isValid {
			key = "invalid"
		}
		return hardware.KnownTPM{Key: key, IsListed: true}
	}
	known := hardware.KnownTPM{HadTenant: status.LastTenant != "" && !(status.Wanted.IsOpen() && status.Wanted.FirstInstallation)}
	kept := HardwareTPM(status.TPM)
	if a := status.Progress(); kept.Key == "" && a != nil && a.TPM != nil && hardware.TPMProof(a.TPM.Proof).IsKept() {
		kept, known.IsFirstUse = HardwareTPM(a.TPM), true // an earlier boot of the attempt, which is kept when that has ended
	}
	known.Key = kept.Key // a server that was without a TPM may get one
	return known
}

// HardwareTPM returns what an agent has reported as the type of package hardware.
func HardwareTPM(kept *v1alpha1.HostTPM) hardware.TPM {
	if kept == nil {
		return hardware.TPM{}
	}
	return hardware.TPM{Proof: hardware.TPMProof(kept.Proof), Key: kept.Key, Certificate: kept.Certificate, Error: kept.Error}
}

// RecordTPM returns what an agent has reported as a HostRecord has it; nil: nothing.
func RecordTPM(t hardware.TPM) *v1alpha1.HostTPM {
	if t.Proof == "" {
		return nil
	}
	return &v1alpha1.HostTPM{Proof: v1alpha1.TPMProof(t.Proof), Key: t.Key, Certificate: t.Certificate, Error: t.Error}
}
