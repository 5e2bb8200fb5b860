package netboot

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// lockedStore is a fakeStore for many requests at once.
type lockedStore struct {
	*fakeStore
	mu sync.Mutex
}

func (s *lockedStore) ByMAC(ctx context.Context, mac string) (Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fakeStore.ByMAC(ctx, mac)
}

func (s *lockedStore) CachedByMAC(ctx context.Context, mac string) (Session, error) {
	return s.ByMAC(ctx, mac)
}

func (s *lockedStore) Update(ctx context.Context, uid string, change func(*Session) error) (Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fakeStore.Update(ctx, uid, change)
}

func TestAThousandServersThatAskAtOnceGetTheirBootDocuments(t *testing.T) {
	const servers = 1000
	s := newSite(t)
	options := s.service.options
	options.Log, options.Count = nil, nil
	for i := range servers {
		session := *s.store.sessions["host-a"]
		session.HostUID, session.BootMAC = fmt.Sprintf("host-%d", i), fmt.Sprintf("52:54:00:00:%02x:%02x", i>>8, i&255)
		s.store.sessions[session.HostUID] = &session
	}
	options.Store = &lockedStore{fakeStore: s.store}
	service, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	documents := make([]string, servers)
	var group sync.WaitGroup
	for i := range servers {
		group.Go(func() {
			recorder := httptest.NewRecorder()
			service.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/boot/52:54:00:00:%02x:%02x", i>>8, i&255), nil))
			documents[i] = recorder.Body.String()
		})
	}
	group.Wait()
	tokens := map[string]bool{}
	for i, document := range documents {
		_, token, found := strings.Cut(document, "ingot.token=")
		if !found {
			t.Fatalf("server %d got %q", i, document)
		}
		tokens[strings.Fields(token)[0]] = true
	}
	if len(tokens) != servers {
		t.Errorf("%d tokens for %d servers", len(tokens), servers)
	}
}

func FuzzABootRequestIsAnsweredAndGivesAStrangerNothing(f *testing.F) {
	for _, seed := range [][2]string{
		{"52:54:00:00:00:01", ""}, {"0c:42:a1:00:00:0z", "failed=kernel&errno=0x1"}, {"../files/kernel", ""}, {"%00", "failed=%00"}, {"0c42a1000001", "failed=boot&errno=0xffffffffff"}, {"", "=&&;"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, mac, query string) {
		if canonical, err := ParseMAC(mac); err == nil && strings.HasPrefix(canonical, "0c:42:a1:00:00:0") {
			return // the hosts of the site
		}
		s := newSite(t)
		request := httptest.NewRequest(http.MethodGet, "/boot/x", nil)
		request.URL = &url.URL{Path: "/boot/" + mac, RawQuery: query}
		recorder := httptest.NewRecorder()
		s.service.ServeHTTP(recorder, request)
		body := recorder.Body.String()
		if strings.Contains(body, "ingot.token=") || strings.Contains(body, "KERNEL") && !strings.Contains(mac, "files") || recorder.Code >= http.StatusInternalServerError {
			t.Errorf("%q %q: %d %q", mac, query, recorder.Code, body)
		}
		if s.store.updates != 0 {
			t.Errorf("%q %q changes a session", mac, query)
		}
		failure := loadFailureOf(request)
		if failure.errno != "" && len(failure.errno) > 8 {
			t.Errorf("%q: errno %q", query, failure.errno)
		}
	})
}
