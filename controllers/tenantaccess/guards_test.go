package tenantaccess

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// warnings counts the warnings that would be logged.
type warnings struct{ count atomic.Int64 }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(int, string, string) { w.count.Add(1) }

func TestATenantsAnswerLeadsTheManagerNowhere(t *testing.T) {
	var elsewhere atomic.Int64
	other, _ := newTLSServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	var logged warnings
	rest.SetDefaultWarningHandler(&logged)
	t.Cleanup(func() { rest.SetDefaultWarningHandler(rest.WarningLogger{}) })
	const emptyList = `{"kind":"SecretList","apiVersion":"v1","items":[]}`
	answer := func(status int, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		// says is what the error says; empty: there is none.
		says string
	}{
		"a time to wait":       {answer(http.StatusTooManyRequests, `{}`, "Retry-After", "3600"), "too many requests"},
		"another address":      {answer(http.StatusTemporaryRedirect, ``, "Location", other.URL), errRedirected.Error()},
		"a header with no end": {answer(http.StatusOK, emptyList, "X-Long", strings.Repeat("x", maxHeaderBytes)), "headers exceeded"},
		"another format":       {answer(http.StatusOK, emptyList, "Content-Type", "application/vnd.kubernetes.protobuf"), errNotJSON.Error()},
		"a warning":            {answer(http.StatusOK, emptyList, "Warning", `299 - "read me"`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMoody(t, "/api/v1/secrets", 20*time.Second, c.answer)
			access := usable(t, m.registry, tenantKey)
			m.isBad.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for who, list := range map[string]func() error{
				"client": func() error { return access.Client.List(ctx, &corev1.SecretList{}) },
				"clientset": func() error {
					return access.Clientset.CoreV1().RESTClient().Get().AbsPath("/api/v1/secrets").Do(ctx).Error()
				},
			} {
				before := m.asked.Load()
				err := list()
				if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || ctx.Err() != nil {
					t.Errorf("%s: %v", who, err)
				}
				if n := m.asked.Load() - before; n != 1 {
					t.Errorf("%s: the tenant was asked %d times", who, n)
				}
			}
		})
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
	if logged.count.Load() != 0 {
		t.Error("a tenant writes to the log of the manager")
	}
}

// requestThrough sends a request with the limits of a client set, whose answer is written by write. It returns which errors were reported,
// and the end of the answer.
func requestThrough(t *testing.T, query string, closing error, write func(io.Writer)) (reported []error, end error) {
	t.Helper()
	limits := deadlines{responseTimeout: 10 * time.Second, totalTimeout: 10 * time.Second, weight: maxResponseWeight, account: newBook(DefaultMemory, 0).open("t", nil)}
	limits.onResponse = func(_ string, err error) {
		if err != nil {
			reported = append(reported, err)
		}
	}
	limits.next = transportFunc(func(request *http.Request) (*http.Response, error) {
		from, to := io.Pipe()
		context.AfterFunc(request.Context(), func() { _ = to.CloseWithError(closing) })
		go func() {
			write(to)
			_ = to.Close()
		}()
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: from}, nil
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://tenant/api/v1/nodes"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := limits.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_, end = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return reported, end
}

type transportFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const bookmark = `{"type":"BOOKMARK","object":{"kind":"Node","apiVersion":"v1","metadata":{"resourceVersion":"7"}}}` + "\n"

func TestAQuietWatchIsNotSilent(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		// closing is what a read returns once the client has given up; net/http sometimes returns io.EOF.
		closing error
		write   func(io.Writer)
		// end is how the answer ends, and isSilent whether the tenant is lost because of it.
		end      string
		isSilent bool
	}{
		"it sends nothing and is closed": {"?watch=1", context.Canceled, func(io.Writer) { time.Sleep(watchPause - time.Second) }, "<nil>", false},
		"it sends nothing for longer":    {"?watch=1", context.Canceled, func(io.Writer) { time.Sleep(time.Hour) }, errPaused.Error(), false},
		"bookmarks only": {"?watch=1", context.Canceled, func(w io.Writer) {
			for range 14 {
				time.Sleep(time.Minute)
				_, _ = io.WriteString(w, bookmark)
			}
		}, "<nil>", false},
		"it stops in the middle of a bookmark": {"?watch=1", context.Canceled, func(w io.Writer) {
			_, _ = io.WriteString(w, bookmark[:20])
			time.Sleep(time.Hour)
		}, errNoResponse.Error(), true},
		"a list stops in the middle": {"", io.EOF, func(w io.Writer) {
			_, _ = io.WriteString(w, `{"items":[`)
			time.Sleep(time.Hour)
		}, errNoResponse.Error(), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reported, end := requestThrough(t, c.query, c.closing, c.write)
				if !strings.Contains(fmt.Sprint(end), c.end) || (len(reported) != 0) != c.isSilent {
					t.Errorf("it ends with %v, reported is %v", end, reported)
				}
				// Until the writer has ended.
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

func TestAWatchIsReadNoFasterThanItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds = 8
		text := []byte(strings.Repeat(bookmark, 1<<20/len(bookmark)))
		size := 0
		begin := time.Now()
		reported, end := requestThrough(t, "?watch=1", context.Canceled, func(w io.Writer) {
			for size < watchByteBurst+seconds*watchBytesPerSecond {
				_, _ = w.Write(text)
				size += len(text)
			}
		})
		if took := time.Since(begin); end != nil || len(reported) != 0 || took < (seconds-1)*time.Second || took > 2*seconds*time.Second {
			t.Errorf("%d bytes are read in %s: %v, %v", size, took, end, reported)
		}
	})
}
