package ignition

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"github.com/vincent-petithory/dataurl"
)

// maxContent is the largest size of decompressed content, in bytes.
const maxContent = 64 << 20

// decodeContent returns the content of a resource for the file at the path.
func decodeContent(name string, from types.Resource) ([]byte, error) {
	if from.Source == nil {
		return nil, nil
	}
	scheme, _, _ := strings.Cut(*from.Source, ":")
	if *from.Source != "" && scheme != "data" {
		return nil, fmt.Errorf("%w: %s: its content is to be fetched with %s, and nothing is fetched here", ErrRefused, name, scheme)
	}
	var content []byte
	if *from.Source != "" {
		decoded, err := dataurl.DecodeString(*from.Source)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: its data: URL cannot be read", ErrRefused, name)
		}
		content = decoded.Data
	}
	if from.Compression != nil && *from.Compression == "gzip" {
		var err error
		if content, err = unzip(content); err != nil {
			return nil, fmt.Errorf("%w: %s is not compressed as it says", ErrRefused, name)
		}
	}
	if from.Verification.Hash != nil && !hasDigest(content, *from.Verification.Hash) {
		return nil, fmt.Errorf("%w: %s: its content is not what verification.hash says", ErrRefused, name)
	}
	return content, nil
}

func unzip(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(reader, maxContent))
}

// hasDigest reports whether the content has the digest of a hash such as sha256-DIGEST.
func hasDigest(content []byte, hash string) bool {
	kind, want, _ := strings.Cut(hash, "-")
	switch kind {
	case "sha512":
		sum := sha512.Sum512(content)
		return strings.EqualFold(hex.EncodeToString(sum[:]), want)
	case "sha256":
		sum := sha256.Sum256(content)
		return strings.EqualFold(hex.EncodeToString(sum[:]), want)
	}
	return false
}
