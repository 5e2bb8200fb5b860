package netboot

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/tpm"
)

// credentialContext is part of what the key of an agent is made from, as tokenContext is of a token.
const credentialContext = "ingot agent key for a TPM v1\x00"

// serveChallenge returns the key of an agent, sealed for the TPM that the agent names: on another server it is not known. Nothing is stored, because the key follows
// from the boot, the endorsement key and the object in the TPM, so that each replica knows it again.
func (s *Service) serveChallenge(r agentRequest) (any, error) {
	var request protocol.TPM
	if err := decodeBody(r, &request); err != nil {
		return nil, err
	}
	if err := checkNotFinished(&r.session); err != nil {
		return nil, err
	}
	key, secret, err := s.credential(r, request)
	if err != nil {
		return nil, err
	}
	sealed, err := key.Seal(rand.Reader, request.Name, secret)
	if err != nil {
		return nil, protocol.Refusalf(protocol.BadRequest, "%v", err)
	}
	return protocol.Challenge(sealed), nil
}

// credential returns the endorsement key of a TPM, and the key that an agent on its server has in this boot.
func (s *Service) credential(r agentRequest, t protocol.TPM) (tpm.EndorsementKey, []byte, error) {
	key, err := tpm.ParseKey(t.Key)
	if err != nil || !tpm.IsName(t.Name) || len(t.Certificate) > tpm.MaxCertificate {
		return key, nil, protocol.Refusalf(protocol.BadRequest, "expected a TPM's endorsement key, the name of an object and a certificate of at most %d bytes: %v", tpm.MaxCertificate, err)
	}
	signingKey, err := s.signingKey(r.Context())
	if err != nil {
		return key, nil, err
	}
	var bound []byte
	for _, part := range [][]byte{r.claims.encode(), t.Key, t.Name} {
		bound = append(binary.BigEndian.AppendUint32(bound, uint32(len(part))), part...)
	}
	return key, signature(signingKey, credentialContext, bound), nil
}

// readTPM returns what an agent has reported of its TPM. A key counts only where the TPM has opened the agent's own key.
func (s *Service) readTPM(r agentRequest, t *protocol.TPM) (hardware.TPM, error) {
	switch {
	case t == nil:
		return hardware.TPM{}, nil
	case t.IsAbsent:
		return hardware.TPM{Proof: hardware.TPMNone}, nil
	case t.Error != "":
		return hardware.TPM{Error: sanitizeText(t.Error)}, nil
	}
	key, secret, err := s.credential(r, *t)
	if err != nil {
		return hardware.TPM{}, err
	}
	if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(secret)), []byte(r.Header.Get(protocol.HeaderKey))) != 1 {
		return hardware.TPM{}, protocol.Refusalf(protocol.KeyInvalid, "the key of the agent is not the one that was sealed for the TPM that it names")
	}
	reported := hardware.TPM{Key: key.Fingerprint()}
	if key.IsOf(t.Certificate) {
		reported.Certificate = base64.StdEncoding.EncodeToString(t.Certificate)
	}
	return reported, nil
}

// judgeTPM returns what the TPM proves of the agent. It fails the attempt and returns why, where that is not the server's.
//
// Example: a neighbour asks for the boot document of a server that is to be erased, and registers before it. Its own TPM opens nothing that was sealed for the
// server's, so that it is refused, and nothing that it says counts.
func judgeTPM(session *Session, reported hardware.TPM, channel hardware.Channel, address string) (hardware.TPM, *protocol.Refusal) {
	known := session.KnownTPM
	judged, isSame := known.Judge(reported, channel)
	if judged.Proof == hardware.TPMKnown {
		judged.Certificate = "" // it is kept already
	}
	if isSame {
		return judged, nil
	}
	session.TPM = judged
	failAttempt(session, hardware.ReasonTPMDiffers, tpmProblem(*session, known, judged)+"; the agent registered from "+address)
	return judged, protocol.Refusalf(protocol.ServerDiffers, "the TPM of this server is not the one of its host; nothing was changed: what was expected is in the host's status")
}

// tpmProblem says how the TPM that has answered differs, and how a person accepts it.
func tpmProblem(session Session, known hardware.KnownTPM, seen hardware.TPM) string {
	expected := "no TPM 2.0"
	if known.Key != hardware.NoTPM {
		expected = "the TPM with the endorsement key " + hardware.ShortTPMKey(known.Key)
	}
	source := "which an agent found before"
	if known.IsListed {
		source = "which ingot.dev/tpm-key of the BareMetalHost lists"
	}
	found, remedy, accepted := "no TPM 2.0", "enable the TPM in the firmware; if the board was replaced by one without", hardware.NoTPM
	switch seen.Proof {
	case hardware.TPMFailed:
		found, remedy = "a TPM that proves nothing ("+seen.Error+")", "look at the TPM in the firmware; if the server is to do without it"
	case hardware.TPMDiffers:
		found, remedy, accepted = "another one, "+hardware.ShortTPMKey(seen.Key), "look whether another server answered; if the board was replaced", seen.Key
	}
	return fmt.Sprintf("expected %s, %s, seen %s, and nothing was written: %s, accept that: kubectl annotate --overwrite bmh -n %s %s ingot.dev/tpm-key=%s",
		expected, source, found, remedy, session.Namespace, session.Name, accepted)
}
