package osimage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	// requestTimeout is the time limit of one request. The body of an image is never read.
	requestTimeout = 15 * time.Second
	// maxChecksums is how many bytes of a checksum file are read. The SHA256SUMS of a mirror has some hundred kilobytes.
	maxChecksums = 4 << 20
)

// observation is what the image's server and the server of its checksum file answered. observe sets all of it.
type observation struct {
	// checksum is the pinned digest, as sha256:HEX or sha512:HEX; empty: none has been found yet.
	checksum string
	// size is the length of the image in bytes; nil: the server does not report it.
	size *int64
	// problem is why the image cannot be used; nil: it can.
	problem *problem
	// untrusted is why the manager does not know who signed the server's certificate; empty: it does.
	untrusted string
	// unconfirmed is why the manager reaches no server at the address; empty: it does.
	unconfirmed string
	// certificateEnds is when the certificate of the server ends; zero: it has none.
	certificateEnds time.Time
}

// answerError is an answer of a server that does not have the file.
type answerError struct{ status string }

// Error implements error.
func (e answerError) Error() string { return "it answered " + e.status }

// problem is why an image cannot be used.
type problem struct {
	reason  string
	message string
}

func (r *Reconciler) observe(ctx context.Context, image *v1alpha1.OSImage) observation {
	obs := observation{checksum: image.Status.Checksum}
	if isDigest(image.Spec.Checksum) {
		obs.checksum = image.Spec.Checksum
	} else if obs.checksum == "" {
		obs.checksum, obs.problem = r.resolveChecksum(ctx, image)
	}
	size, ends, err := r.size(ctx, image.Spec.URL)
	obs.size, obs.certificateEnds = size, ends
	switch before := image.Status.SizeBytes; {
	case obs.problem != nil:
	case isNoAnswer(err):
		obs.unconfirmed = fmt.Sprintf("%s: %v", withoutCredentials(image.Spec.URL), err)
	case isUnknownAuthority(err):
		obs.untrusted = fmt.Sprintf("%s: %v", withoutCredentials(image.Spec.URL), err)
	case err != nil:
		obs.problem = unreachableProblem(image.Spec.URL, err)
	case before != nil && size != nil && *before != *size:
		obs.problem = &problem{v1alpha1.ReasonImageSizeDiffers, fmt.Sprintf("%s: expected %d bytes as before, seen %d: the file was replaced, and its digest cannot be %s: restore it, or create another OSImage",
			withoutCredentials(image.Spec.URL), *before, *size, obs.checksum)}
	}
	return obs
}

// isNoAnswer reports whether the request has reached no server that answers: the network between may not carry it, although it carries that of
// a server on the provisioning network. A certificate that cannot be verified is an answer.
func isNoAnswer(err error) bool {
	if err == nil || isCertificateError(err) {
		return false
	}
	return !errors.As(err, new(answerError)) && !errors.Is(err, errNoURL) && !errors.Is(err, errRedirect) && !errors.Is(err, errDowngrade)
}

// isUnknownAuthority reports whether only the signer of a certificate is not known. The certificate's name and end are judged before
// (crypto/x509.Certificate.Verify), so they are right, and the installer's image may trust a signer that the manager does not.
func isUnknownAuthority(err error) bool { return errors.As(err, new(x509.UnknownAuthorityError)) }

func isCertificateError(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError))
}

// errNoURL is the error of an address that is no URL.
var errNoURL = errors.New("it is no URL")

func isDigest(checksum string) bool {
	return strings.HasPrefix(checksum, "sha256:") || strings.HasPrefix(checksum, "sha512:")
}

// resolveChecksum reads the digest of the image from its checksum file.
func (r *Reconciler) resolveChecksum(ctx context.Context, image *v1alpha1.OSImage) (string, *problem) {
	response, cancel, err := r.sendRequest(ctx, http.MethodGet, image.Spec.Checksum, "", checkChecksumRedirect)
	if err == nil && response.StatusCode != http.StatusOK {
		err = answerError{response.Status}
	}
	defer cancel()
	if err != nil {
		return "", unreachableProblem(image.Spec.Checksum, err)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxChecksums))
	if err != nil {
		return "", unreachableProblem(image.Spec.Checksum, withoutURL(err))
	}
	parsed, err := url.Parse(image.Spec.URL)
	if err != nil {
		return "", unreachableProblem(image.Spec.URL, errors.New("it is no URL"))
	}
	name := path.Base(parsed.Path)
	switch digest, found := findDigest(string(content), name); {
	case !found:
		return "", &problem{v1alpha1.ReasonChecksumNotFound, fmt.Sprintf("%s has no line for %s: check the names in the file", withoutCredentials(image.Spec.Checksum), name)}
	case digest == "":
		return "", &problem{v1alpha1.ReasonChecksumInvalid, fmt.Sprintf("%s has a line for %s, and what it says is no sha256 or sha512 digest", withoutCredentials(image.Spec.Checksum), name)}
	default:
		return digest, nil
	}
}

// size returns the length of the file, nil where the server does not report it, and when the certificate of the server ends. Some servers refuse
// HEAD; the first byte is requested then.
func (r *Reconciler) size(ctx context.Context, address string) (*int64, time.Time, error) {
	response, cancel, err := r.sendRequest(ctx, http.MethodHead, address, "", checkRedirect)
	defer cancel()
	if err == nil && response.StatusCode == http.StatusOK && response.ContentLength >= 0 {
		return &response.ContentLength, certificateEnd(response), nil
	}
	response, cancel, err = r.sendRequest(ctx, http.MethodGet, address, "bytes=0-0", checkRedirect)
	defer cancel()
	if err != nil {
		return nil, time.Time{}, err
	}
	switch ends := certificateEnd(response); {
	case response.StatusCode == http.StatusPartialContent:
		return totalSize(response.Header.Get("Content-Range")), ends, nil
	case response.StatusCode == http.StatusOK && response.ContentLength >= 0:
		return &response.ContentLength, ends, nil
	case response.StatusCode == http.StatusOK:
		return nil, ends, nil
	}
	return nil, time.Time{}, answerError{response.Status}
}

// certificateEnd returns when the server's certificate ends; zero: it has none.
func certificateEnd(response *http.Response) time.Time {
	if response.TLS == nil || len(response.TLS.PeerCertificates) == 0 {
		return time.Time{}
	}
	return response.TLS.PeerCertificates[0].NotAfter
}

// sendRequest sends one request. The returned function closes the response and is never nil.
func (r *Reconciler) sendRequest(ctx context.Context, method, address, byteRange string, redirects func(*http.Request, []*http.Request) error) (*http.Response, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, cancel, errNoURL
	}
	// The size and the digest must be those of the uncompressed file.
	request.Header.Set("Accept-Encoding", "identity")
	if byteRange != "" {
		request.Header.Set("Range", byteRange)
	}
	client := r.client(ctx)
	client.CheckRedirect = redirects
	client.Transport = newGuardedTransport(client.Transport)
	response, err := client.Do(request)
	if err != nil {
		return nil, cancel, withoutURL(err)
	}
	return response, func() { _ = response.Body.Close(); cancel() }, nil
}

// totalSize returns the size in a Content-Range such as "bytes 0-0/1234", and nil if it is unknown.
func totalSize(contentRange string) *int64 {
	_, after, _ := strings.Cut(contentRange, "/")
	if size, err := strconv.ParseInt(after, 10, 64); err == nil && size >= 0 {
		return &size
	}
	return nil
}

// withoutURL returns an error of net/http without the URL, whose query may be a signature that grants access.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// withoutCredentials returns an address without user, password and query.
func withoutCredentials(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "the URL"
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}).String()
}

func unreachableProblem(address string, err error) *problem {
	if isUnknownAuthority(err) {
		return &problem{v1alpha1.ReasonImageCertificateUntrusted, fmt.Sprintf("%s: %v: the manager does not know who signed the certificate: give its CA in the NodeProvider's spec.redfish.netboot.caBundle or, where Ironic installs, write the digest itself into spec.checksum (sha256:HEX), which needs no reading, and put the CA into the ramdisk of Ironic's agent", withoutCredentials(address), err)}
	}
	if isCertificateError(err) {
		return &problem{v1alpha1.ReasonImageCertificateInvalid, fmt.Sprintf("%s: %v: the agent that installs does not trust it either: correct the certificate of that server", withoutCredentials(address), err)}
	}
	return &problem{v1alpha1.ReasonImageUnreachable, fmt.Sprintf("%s: %v", withoutCredentials(address), err)}
}

// The formats of checksum files: of sha256sum, of BSD (sha256 --tag, openssl dgst), and a file with only a digest.
var (
	gnuLine    = regexp.MustCompile(`^([0-9A-Fa-f]+) [ *](.+)$`)
	bsdLine    = regexp.MustCompile(`^([A-Za-z0-9-]+) ?\((.+)\) ?= ?([0-9A-Fa-f]+)$`)
	loneDigest = regexp.MustCompile(`^\s*([0-9A-Fa-f]{64}|[0-9A-Fa-f]{128})\s*$`)
)

// findDigest returns the digest of the file as sha256:HEX or sha512:HEX, and sha512 if both exist. found is true if a line is for the
// file. If digest is empty then, no line for the file has a digest of a known algorithm.
func findDigest(content, name string) (digest string, found bool) {
	if match := loneDigest.FindStringSubmatch(content); match != nil {
		return withAlgorithm("", match[1]), true
	}
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\r\n")
		var algorithm, sum, file string
		if match := bsdLine.FindStringSubmatch(line); match != nil {
			algorithm, file, sum = match[1], match[2], match[3]
		} else if match := gnuLine.FindStringSubmatch(line); match != nil {
			sum, file = match[1], match[2]
		}
		if file == "" || path.Base(file) != name {
			continue
		}
		found = true
		if candidate := withAlgorithm(algorithm, sum); len(candidate) > len(digest) {
			digest = candidate
		}
	}
	return digest, found
}

// withAlgorithm returns the digest with its algorithm as a prefix. It returns an empty string if the length does not fit, or if the
// algorithm is another one.
func withAlgorithm(algorithm, sum string) string {
	sum, algorithm = strings.ToLower(sum), strings.ReplaceAll(strings.ToLower(algorithm), "-", "")
	switch {
	case len(sum) == 64 && slices.Contains([]string{"", "sha256", "sha2256"}, algorithm):
		return "sha256:" + sum
	case len(sum) == 128 && slices.Contains([]string{"", "sha512", "sha2512"}, algorithm):
		return "sha512:" + sum
	}
	return ""
}
