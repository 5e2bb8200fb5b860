package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
)

// ErrUserData is the error of user data that cloud-init would not accept.
var ErrUserData = errors.New("user data")

const (
	// maxDocument is the largest size of decompressed content, in bytes.
	maxDocument = 64 << 20
	// maxNested is the largest depth of messages in messages.
	maxNested = 8
	kindConf  = "text/cloud-config"
	kindShell = "text/x-shellscript"
)

// contentPrefixes are the beginnings by which kinds of content are recognized, longer ones first.
var contentPrefixes = []struct{ prefix, kind string }{
	{"#cloud-config-archive", "text/cloud-config-archive"}, {"#cloud-config-jsonp", "text/cloud-config-jsonp"}, {"## template: jinja", "text/jinja2"},
	{"#cloud-boothook", "text/cloud-boothook"}, {"#include-once", "text/x-include-once-url"}, {"#part-handler", "text/part-handler"},
	{"#cloud-config", kindConf}, {"#include", "text/x-include-url"}, {"#!", kindShell},
}

// examinedTypes are content types whose content is examined to find its kind. That includes the type of scripts.
var examinedTypes = []string{"", "text/plain", "text/x-not-multipart", kindShell}

// compressedTypes are content types whose content is decompressed and then examined.
var compressedTypes = []string{
	"application/gzip", "application/gzip-compressed", "application/gzipped", "application/x-compress", "application/x-compressed",
	"application/x-gunzip", "application/x-gzip", "application/x-gzip-compressed",
}

// part is a document in user data.
type part struct {
	kind, name, merge string
	text              []byte
}

// splitParts returns the parts of user data.
func splitParts(text []byte) ([]part, error) {
	text, err := gunzipIfCompressed(text)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(bytes.ToLower(text[:min(len(text), 4096)]), []byte("mime-version:")) {
		return addPart(nil, part{text: text})
	}
	message, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: its MIME header cannot be read", ErrUserData)
	}
	return addParts(nil, textproto.MIMEHeader(message.Header), message.Body, 0)
}

// addParts adds the parts of a message, and of messages inside it.
func addParts(parts []part, header textproto.MIMEHeader, body io.Reader, depth int) ([]part, error) {
	kind, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil && header.Get("Content-Type") != "" {
		return nil, fmt.Errorf("%w: a part's Content-Type cannot be read", ErrUserData)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		return decodePart(parts, kind, header, body)
	}
	if depth == maxNested {
		return nil, fmt.Errorf("%w: messages are nested more than %d deep", ErrUserData, maxNested)
	}
	reader := multipart.NewReader(body, parameters["boundary"])
	for {
		next, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: the MIME message ends before its last boundary", ErrUserData)
		}
		if parts, err = addParts(parts, next.Header, next, depth+1); err != nil {
			return nil, err
		}
	}
}

func decodePart(parts []part, kind string, header textproto.MIMEHeader, body io.Reader) ([]part, error) {
	text, err := decodeTransfer(header.Get("Content-Transfer-Encoding"), body)
	if err != nil {
		return nil, err
	}
	p := part{kind: kind, text: text, merge: header.Get("Merge-Type")}
	if p.merge == "" {
		p.merge = header.Get("X-Merge-Type")
	}
	if _, parameters, err := mime.ParseMediaType(header.Get("Content-Disposition")); err == nil && parameters["filename"] != "" {
		p.name = parameters["filename"]
	}
	return addPart(parts, p)
}

// decodeTransfer decodes the transfer encoding of a part.
func decodeTransfer(encoding string, body io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxDocument))
	if err != nil {
		return nil, fmt.Errorf("%w: the MIME message ends before its last boundary", ErrUserData)
	}
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "base64":
		return DecodeBase64(string(text))
	case "quoted-printable":
		if text, err = io.ReadAll(quotedprintable.NewReader(bytes.NewReader(text))); err != nil {
			return nil, fmt.Errorf("%w: a part is not encoded as it says", ErrUserData)
		}
	}
	return text, nil
}

// addPart finds the part's kind and adds the part.
func addPart(parts []part, p part) ([]part, error) {
	if slices.Contains(compressedTypes, p.kind) {
		text, err := gunzip(p.text)
		if err != nil {
			return nil, err
		}
		p.kind, p.text = "", text
	}
	if slices.Contains(examinedTypes, p.kind) {
		begin := bytes.ToLower(bytes.TrimSpace(p.text[:min(len(p.text), 4096)]))
		if len(begin) == 0 {
			return parts, nil
		}
		for _, known := range contentPrefixes {
			if bytes.HasPrefix(begin, []byte(known.prefix)) {
				p.kind = known.kind
				break
			}
		}
	}
	if p.kind != kindConf && p.kind != kindShell {
		return nil, fmt.Errorf("%w: a part of the kind %q, which is neither a #cloud-config nor a script", ErrUserData, p.kind)
	}
	if p.name == "" {
		p.name = fmt.Sprintf("part-%03d", len(parts)+1)
	}
	return append(parts, p), nil
}

// gunzipIfCompressed decompresses the text if it is compressed with gzip.
func gunzipIfCompressed(text []byte) ([]byte, error) {
	if !bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		return text, nil
	}
	return gunzip(text)
}

func gunzip(text []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(text))
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(reader, maxDocument))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: something is not compressed as it says", ErrUserData)
	}
	return text, nil
}

// DecodeBase64 decodes base64 that may have line breaks.
func DecodeBase64(text string) ([]byte, error) {
	out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, fmt.Errorf("%w: something is not base64 as it says", ErrUserData)
	}
	return out, nil
}
