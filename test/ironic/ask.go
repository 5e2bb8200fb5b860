package ironic

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// clientAPIVersion is the version that other clients of Ironic speak.
const clientAPIVersion = "1.68"

// Ask sends a request to Ironic as another client than Ingot does: a person, Nova. The path begins with /v1; the body is JSON, or empty.
func Ask(ctx context.Context, endpoint, method, path, body string) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, endpoint+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-OpenStack-Ironic-API-Version", clientAPIVersion)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
