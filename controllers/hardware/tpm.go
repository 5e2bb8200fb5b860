package hardware

import (
	"encoding/hex"
	"strings"
)

// NoTPM stands in the place of a key for a server without a TPM 2.0.
const NoTPM = "none"

// TPMProof is what the TPM of a server proves of an agent.
type TPMProof string

// What a TPM proves. Against whom that holds is said beside the channels.
const (
	// TPMListed is an agent whose server's TPM has opened what was sealed for the key that a person has listed.
	TPMListed TPMProof = "Listed"
	// TPMKnown is the same for the key that an agent reported before, and that is trusted since.
	TPMKnown TPMProof = "Known"
	// TPMFirstUse is the same for a key that was seen first then, and is trusted from then on.
	TPMFirstUse TPMProof = "FirstUse"
	// TPMUnlisted is the same for a key that is not trusted, because another server could have been first to show it: the host has had a tenant.
	TPMUnlisted TPMProof = "Unlisted"
	// TPMDiffers is another key than the one that is known or listed. Such an agent is refused.
	TPMDiffers TPMProof = "Differs"
	// TPMNone is a server without a TPM 2.0.
	TPMNone TPMProof = "None"
	// TPMFailed is one whose TPM did not prove anything, because it gave errors or no answer.
	TPMFailed TPMProof = "Failed"
)

// IsKept reports whether what an agent reports with the proof is what later agents must prove.
func (p TPMProof) IsKept() bool { return p == TPMListed || p == TPMFirstUse || p == TPMNone }

// TPM is what the agent of a boot reports of its server's TPM, and what that proves. The zero value is that nothing was reported, as by an agent of an earlier version.
type TPM struct {
	// Proof is TPMNone where the agent reports that there is none.
	Proof TPMProof
	// Key is the fingerprint of the endorsement key: the SHA-256 digest of its SubjectPublicKeyInfo, in hexadecimal digits.
	Key string
	// Certificate is that of the key, DER in base64, where the TPM has one.
	Certificate string
	// Error says why the TPM did not prove anything.
	Error string
}

// KnownTPM is what is known of the TPM of a host before its agent reports.
type KnownTPM struct {
	// Key is the fingerprint of its endorsement key, or NoTPM; empty: nothing is known.
	Key string
	// IsListed says that a person has listed the key.
	IsListed bool
	// IsFirstUse says that the key was seen first in an earlier boot of the attempt.
	IsFirstUse bool
	// HadTenant says that disks of the host may have what a tenant has left there, so that no key is trusted because it is the first one.
	HadTenant bool
}

// Judge returns what was reported with what it proves, and whether it is the server's: an agent whose TPM differs is refused. Absent is different.
func (k KnownTPM) Judge(reported TPM, c Channel) (judged TPM, isSame bool) {
	hasKey := k.Key != "" && k.Key != NoTPM
	switch {
	case reported.Error != "":
		reported.Proof = TPMFailed
		return reported, !hasKey
	case reported.Key == "":
		return reported, !hasKey
	case reported.Key == k.Key && k.IsListed:
		reported.Proof = TPMListed
	case reported.Key == k.Key && k.IsFirstUse:
		reported.Proof = TPMFirstUse
	case reported.Key == k.Key:
		reported.Proof = TPMKnown
	case k.Key != "":
		reported.Proof = TPMDiffers
		return reported, false
	case k.HadTenant && !c.IsProofAgainst(Neighbour):
		reported.Proof = TPMUnlisted
	default:
		reported.Proof = TPMFirstUse
	}
	return reported, true
}

// IsProofAgainst reports whether an agent is the server's own by what the TPM proves, whatever the adversary does. One in the path may have the server start another
// agent, and so may the system that was on it: a TPM tells the server, not what has booted there.
func (p TPMProof) IsProofAgainst(a Adversary) bool {
	return (p == TPMKnown || p == TPMListed) && a == Neighbour
}

// shownDigits is how much of a fingerprint tells two servers apart at a glance.
const shownDigits = 16

// ShortTPMKey returns the beginning of a fingerprint, for people.
func ShortTPMKey(key string) string {
	if len(key) <= shownDigits {
		return key
	}
	return key[:shownDigits]
}

// ParseTPMKey reads a fingerprint in its usual spellings (upper case, colons, sha256: before it), or NoTPM.
func ParseTPMKey(text string) (key string, isValid bool) {
	key = strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "sha256:"), ":", "")
	if key == NoTPM {
		return key, true
	}
	digest, err := hex.DecodeString(key)
	return key, err == nil && len(digest) == 32
}

// Describe continues the name of a channel with what the TPM proves; empty: that is not known.
func (p TPMProof) Describe() string {
	switch p {
	case TPMListed, TPMKnown:
		return ", from the server that the TPM proves it to be"
	case TPMFirstUse:
		return ", from a server whose TPM was seen first then"
	case TPMUnlisted:
		return ", from a server whose TPM is not trusted"
	case TPMDiffers:
		return ", from a server with another TPM"
	case TPMNone:
		return " without a TPM"
	case TPMFailed:
		return " with a TPM that proved nothing"
	}
	return ""
}
