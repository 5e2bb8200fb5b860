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
	// minKey is the least length of the key in bytes: that of the hash, as RFC 2104 section 3 asks for.
	minKey = sha256.Size
	// tokenContext keeps a signature made for anything else with the same key from being a token.
	tokenContext = "ingot agent token v1\x00"
	// maxHostUID bounds what is parsed from strangers.
	maxHostUID = 256
	// maxToken is the length of the longest token, in characters.
	maxToken = (claimsFixed+maxHostUID+sha256.Size)*4/3 + 8
	// claimsFixed is attempt, boot and expiry.
	claimsFixed = 8 + 8 + 8
)

// claims is what a token says.
type claims struct {
	hostUID string
	attempt int64
	boot    int64
	expires time.Time
}

var tokenEncoding = base64.RawURLEncoding.Strict()

// encode is attempt, boot and expiry as big-endian 64-bit numbers, then the uid: the only encoding of these claims.
func (c claims) encode() []byte {
	out := make([]byte, 0, claimsFixed+len(c.hostUID))
	out = binary.BigEndian.AppendUint64(out, uint64(c.attempt))
	out = binary.BigEndian.AppendUint64(out, uint64(c.boot))
	out = binary.BigEndian.AppendUint64(out, uint64(c.expires.Unix()))
	return append(out, c.hostUID...)
}

// signToken makes the token for the claims.
func signToken(key []byte, c claims) string {
	payload := c.encode()
	return tokenEncoding.EncodeToString(payload) + "." + tokenEncoding.EncodeToString(signature(key, payload))
}

// verifyToken checks signature and expiry. Whether the claims are current is the session's to say.
func verifyToken(key []byte, token string, now time.Time) (claims, error) {
	invalid := protocol.Refuse(protocol.TokenInvalid, "the token was not made by this service")
	if len(token) > maxToken {
		return claims{}, invalid
	}
	first, second, found := strings.Cut(token, ".")
	if !found {
		return claims{}, invalid
	}
	payload, err := tokenEncoding.DecodeString(first)
	if err != nil || len(payload) <= claimsFixed || len(payload) > claimsFixed+maxHostUID {
		return claims{}, invalid
	}
	sum, err := tokenEncoding.DecodeString(second)
	if err != nil || !hmac.Equal(sum, signature(key, payload)) {
		return claims{}, invalid
	}
	c := claims{
		attempt: int64(binary.BigEndian.Uint64(payload)),
		boot:    int64(binary.BigEndian.Uint64(payload[8:])),
		expires: time.Unix(int64(binary.BigEndian.Uint64(payload[16:])), 0),
		hostUID: string(payload[claimsFixed:]),
	}
	if !now.Before(c.expires) {
		return claims{}, protocol.Refuse(protocol.TokenExpired, "the token expired with its attempt's deadline")
	}
	return c, nil
}

func signature(key, payload []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(tokenContext))
	mac.Write(payload)
	return mac.Sum(nil)
}
