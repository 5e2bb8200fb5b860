package plan

import (
	"crypto/sha256"
	"encoding/hex"
)

// Named gives a configuration a name of its own.
func Named(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "ingot-" + hex.EncodeToString(sum[:5])
}
