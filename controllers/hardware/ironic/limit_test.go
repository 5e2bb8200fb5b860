package ironic

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/api/input"
)

// TestChangesWaitUntilEarlierOnesAreAnswered has a server that answers a change only when as many as may be are under way.
func TestChangesWaitUntilEarlierOnesAreAnswered(t *testing.T) {
	const limit, changes = 3, 30
	var underWay, most, arrived atomic.Int32
	full := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return
		}
		n := underWay.Add(1)
		defer underWay.Add(-1)
		for {
			before := most.Load()
			if n <= before || most.CompareAndSwap(before, n) {
				break
			}
		}
		if arrived.Add(1) == limit {
			close(full)
		}
		<-full
	}))
	defer server.Close()
	client := &http.Client{Transport: limitedTransport{next: http.DefaultTransport, slots: make(chan struct{}, limit), timeout: time.Minute}}
	send := func(ctx context.Context, method string) error {
		request, err := http.NewRequestWithContext(ctx, method, server.URL, strings.NewReader("{}"))
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	var all sync.WaitGroup
	for range changes {
		all.Go(func() {
			if err := send(t.Context(), http.MethodPut); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() != limit {
		t.Errorf("%d changes were under way at the same time, expected %d", most.Load(), limit)
	}
}

func TestAReadDoesNotWaitForChangesAndAChangeThatIsGivenUpEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	slots := make(chan struct{}, 1)
	slots <- struct{}{} // a change is under way
	client := &http.Client{Transport: limitedTransport{next: http.DefaultTransport, slots: slots, timeout: time.Minute}}
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if response, err := client.Do(request); err == nil {
		_ = response.Body.Close()
		t.Error("a change was sent while another one had the only slot")
	}
}

func TestAnAnswerThatIsTooLargeIsAnError(t *testing.T) {
	answers := map[string]string{
		"/":      `{"nodes": []}`,
		"/bytes": `"` + strings.Repeat("x", 17<<20) + `"`,
		"/items": "[" + strings.Repeat("0,", 600_000) + "0]",
		"/depth": strings.Repeat("[", 100),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, answers[r.URL.Path]) }))
	defer server.Close()
	client := &http.Client{Transport: limitedTransport{next: http.DefaultTransport, timeout: time.Minute}}
	for path, text := range answers {
		response, err := client.Get(server.URL + path)
		if err == nil {
			body, readErr := io.ReadAll(response.Body)
			if err = errors.Join(readErr, response.Body.Close()); string(body) != text {
				t.Errorf("%s: %d bytes are read, %d are sent", path, len(body), len(text))
			}
		}
		if large := (*input.Error)(nil); errors.As(err, &large) != (path != "/") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
