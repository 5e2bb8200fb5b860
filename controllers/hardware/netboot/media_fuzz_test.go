package netboot

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A BMC asks for parts of a medium in its own way, and a neighbour for whatever it guesses.
func FuzzAMediaRequestGetsAPartOfTheMediumOrNothing(f *testing.F) {
	for _, seed := range [][3]string{
		{"", "", ""}, {"", "", "bytes=0-0"}, {"", "", "bytes=-1"}, {"", "", "bytes=5-2,9-"}, {"", "", "bytes=0-18446744073709551615"}, {"", "", "lines=1"},
		{"x", "", ""}, {"..", "", ""}, {"%2e%2e", "", ""}, {"", "x", ""}, {"", "../kernel", "bytes=0-"}, {"\x00", "\xff", "bytes=0-1"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, secret, file, parts string) {
		s := newSite(t)
		s.settings.URL = s.url
		address, _, err := s.service.MediaURLs(t.Context(), *s.store.sessions["host-a"], 1)
		if err != nil {
			t.Fatal(err)
		}
		path := strings.TrimPrefix(address, s.url)
		isExact := secret == "" && file == ""
		if !isExact {
			path = path[:strings.LastIndex(path, "/")] + secret + path[strings.LastIndex(path, "/"):] + file
		}
		get := func(parts string) *httptest.ResponseRecorder {
			request := httptest.NewRequest(http.MethodGet, "/media/x", nil)
			request.URL = &url.URL{Path: path}
			if parts != "" {
				request.Header["Range"] = []string{parts}
			}
			recorder := httptest.NewRecorder()
			s.service.ServeHTTP(recorder, request)
			return recorder
		}
		answer := get(parts)
		switch {
		case answer.Code >= http.StatusInternalServerError:
			t.Errorf("%q %q: %d %q", path, parts, answer.Code, answer.Body)
		case !isExact && (answer.Code < http.StatusMultipleChoices || strings.Contains(answer.Body.String(), "ingot.token=")):
			t.Errorf("%q is not the URL of a medium and got %d %q", path, answer.Code, answer.Body)
		case isExact && parts == "" && (answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "ingot.token=")):
			t.Errorf("the medium: %d %q", answer.Code, answer.Body)
		case isExact && answer.Code == http.StatusPartialContent && !strings.HasPrefix(answer.Header().Get("Content-Type"), "multipart/"):
			if whole := get("").Body.Bytes(); !bytes.Contains(whole, answer.Body.Bytes()) {
				t.Errorf("%q: %q is no part of %q", parts, answer.Body, whole)
			}
		}
	})
}
