package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// maxBody bounds a request that changes something; API servers take no more either.
const maxBody = 3 << 20

// errKilled: the manager that asked is no more.
var errKilled = errors.New("the manager was killed")

// Front is an HTTPS server in front of one API server or BMC.
type Front struct {
	name   string
	steps  *Steps
	server *httptest.Server
	to     *url.URL
	// next sends requests on.
	next *http.Transport

	mu sync.Mutex
	// sessions are those of a BMC that nobody ended: token by path.
	sessions map[string]string
}

// Listen starts a Front on a loopback port. The authority, PEM encoded, is the upstream's.
func (s *Steps) Listen(name, upstream string, authority []byte) (*Front, error) {
	to, err := url.Parse(upstream)
	if err != nil {
		return nil, fmt.Errorf("relay %s: %w", name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("relay %s: the authority of %s holds no certificate", name, upstream)
	}
	f := &Front{name: name, steps: s, to: to, sessions: map[string]string{}, next: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, DisableCompression: true,
	}}
	quiet := log.New(io.Discard, "", 0) // connections of a killed process break
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: f.next, FlushInterval: -1, ErrorLog: quiet, ModifyResponse: f.answer,
		// A connection that breaks on one side breaks on the other.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(proxy, w, r) }))
	f.server.Config.ErrorLog, f.server.EnableHTTP2 = quiet, true
	f.server.StartTLS()
	return f, nil
}

// URL is where the Front listens.
func (f *Front) URL() string { return f.server.URL }

// CA is the certificate, PEM encoded, that all Fronts have.
func (f *Front) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw})
}

// Close ends the Front with every connection.
func (f *Front) Close() {
	f.server.CloseClientConnections()
	f.server.Close()
	f.next.CloseIdleConnections()
}

// passage is a counted request on its way.
type passage struct {
	request *Request
	// kill is not nil when the manager dies once the request took effect.
	kill func()
}

type passageKey struct{}

func (f *Front) serve(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	if !changes(r) {
		proxy.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler) // it never arrived
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	request, when, kill := f.steps.next(Request{Target: f.name, Method: r.Method, Path: r.URL.Path, Body: body})
	if kill != nil && when == Before {
		kill()
		panic(http.ErrAbortHandler)
	}
	// The effect of a request that was forwarded does not depend on its sender's life.
	ctx := context.WithValue(context.WithoutCancel(r.Context()), passageKey{}, &passage{request, kill})
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// answer sees what the upstream answered, before the manager does.
func (f *Front) answer(response *http.Response) error {
	f.noteSession(response)
	p, counted := response.Request.Context().Value(passageKey{}).(*passage)
	if !counted {
		return nil
	}
	f.steps.answered(p.request, response.StatusCode)
	if p.kill == nil {
		return nil
	}
	p.kill()
	return errKilled
}

// sessionsPath is the end of a BMC's path where sessions are opened; those it has are below it.
const sessionsPath = "/SessionService/Sessions"

func (f *Front) noteSession(response *http.Response) {
	request := response.Request
	_, below, found := strings.Cut(request.URL.Path, sessionsPath)
	if !found {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch location, err := response.Location(); {
	case request.Method == http.MethodDelete && below != "":
		delete(f.sessions, request.URL.Path)
	case request.Method == http.MethodPost && err == nil:
		f.sessions[location.Path] = response.Header.Get("X-Auth-Token")
	}
}

// ExpireSessions ends the sessions that a killed manager left at a BMC, as the BMC itself does after some minutes.
func (f *Front) ExpireSessions() error {
	f.mu.Lock()
	left := f.sessions
	f.sessions = map[string]string{}
	f.mu.Unlock()
	client := &http.Client{Transport: f.next, Timeout: 10 * time.Second}
	for path, token := range left {
		request, err := http.NewRequest(http.MethodDelete, f.to.JoinPath(path).String(), nil)
		if err != nil {
			return fmt.Errorf("end a session at %s: %w", f.name, err)
		}
		request.Header.Set("X-Auth-Token", token)
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("end a session at %s: %w", f.name, err)
		}
		if err := response.Body.Close(); err != nil {
			return fmt.Errorf("end a session at %s: %w", f.name, err)
		}
	}
	return nil
}
