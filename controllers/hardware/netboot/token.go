package netboot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

const (
	// minKeyBytes is the minimum length of the key: the length of the hash, as RFC 2104 section 3 requires.
	minKeyBytes = sha256.Size
	// tokenContext is part of what is signed, so that a signature for another purpose with the same key is not a valid token.
	tokenContext = "ingot agent token v1\x00"
	// maxHostUIDBytes limits the payload of a token before its signature is checked.
	maxHostUIDBytes = 256
	// maxTokenLength is the length of the longest token, in characters.
	maxTokenLength = (fixedClaimsBytes+maxHostUIDBytes+sha256.Size)*4/3 + 8
	// fixedClaimsBytes is the length of attempt, boot and expiry.
	fixedClaimsBytes = 8 + 8 + 8
)

// claims are the contents of a token.
type claims struct {
	hostUID string
	attempt int64
	boot    int64
	expires time.Time
}

var tokenEncoding = base64.RawURLEncoding.Strict()

// encode returns attempt, boot and expiry as big-endian 64-bit numbers, followed by the host UID. The encoding is unique.
func (c claims) encode() []byte {
	out := make([]byte, 0, fixedClaimsBytes+len(c.hostUID))
	out = binary.BigEndian.AppendUint64(out, uint64(c.attempt))
	out = binary.BigEndian.AppendUint64(out, uint64(c.boot))
	out = binary.BigEndian.AppendUint64(out, uint64(c.expires.Unix()))
	return append(out, c.hostUID...)
}

// signToken returns the token for the claims.
func signToken(key []byte, c claims) string { return signClaims(key, tokenContext, c) }

// signClaims returns the claims with a signature for the purpose that context names.
func signClaims(key []byte, context string, c claims) string {
	payload := c.encode()
	return tokenEncoding.EncodeToString(payload) + "." + tokenEncoding.EncodeToString(signature(key, context, payload))
}

// verifyToken checks the signature and the expiry and returns the claims. It does not check whether they are current: the session does.
func verifyToken(key []byte, token string, now time.Time) (claims, error) {
	return verifyClaims(key, tokenContext, token, now)
}

// verifyClaims does the same for signed claims of any purpose.
func verifyClaims(key []byte, context, token string, now time.Time) (claims, error) {
	invalid := protocol.Refusalf(protocol.TokenInvalid, "the token was not made by this service")
	if len(token) > maxTokenLength {
		return claims{}, invalid
	}
	encodedPayload, encodedSignature, found := strings.Cut(token, ".")
	if !found {
		return claims{}, invalid
	}
	payload, err := tokenEncoding.DecodeString(encodedPayload)
	if err != nil || len(payload) <= fixedClaimsBytes || len(payload) > fixedClaimsBytes+maxHostUIDBytes {
		return claims{}, invalid
	}
	sum, err := tokenEncoding.DecodeString(encodedSignature)
	if err != nil || !hmac.Equal(sum, signature(key, context, payload)) {
		return claims{}, invalid
	}
	c := claims{
		attempt: int64(binary.BigEndian.Uint64(payload)),
		boot:    int64(binary.BigEndian.Uint64(payload[8:])),
		expires: time.Unix(int64(binary.BigEndian.Uint64(payload[16:])), 0),
		hostUID: string(payload[fixedClaimsBytes:]),
	}
	if !now.Before(c.expires) {
		return claims{}, protocol.Refusalf(protocol.TokenExpired, "the token expired with its attempt's deadline")
	}
	return c, nil
}

func signature(key []byte, context string, payload []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(context))
	mac.Write(payload)
	return mac.Sum(nil)
}
