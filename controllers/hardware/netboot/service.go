package netboot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// defaultProgressInterval is how often progress is written when Options say nothing.
	defaultProgressInterval = 10 * time.Second
	// requestTime bounds one request, its body and the store's answer included; kernel and initrd are not bound by it.
	requestTime = 30 * time.Second
	// retryAfter is what a client is asked to wait when the store does not answer, in seconds.
	retryAfter = "5"
)

// Options configure a Service. Store, Key, BaseURL, Files, Kernel and Initrd are required.
type Options struct {
	// Store keeps the sessions.
	Store Store
	// Key returns the key that signs tokens, at least 32 bytes; it is asked for with every request, so a changed Secret is used at once.
	Key func(context.Context) ([]byte, error)
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
	// BaseURL is where servers reach this service, "http://10.0.0.2:8080", without a trailing slash.
	BaseURL string
	// HostURL returns where one host reaches this service, in the form of BaseURL; "", or nil: BaseURL.
	HostURL func(context.Context, Session) (string, error)
	// Files holds the agent's kernel and initrd under the names Kernel and Initrd; its files must be seekable, as those of os.DirFS are.
	Files          fs.FS
	Kernel, Initrd string
	// KernelArguments are added to the kernel's command line: "console=ttyS0,115200".
	KernelArguments []string
	// Log gets one line for each boot document, refusal and result; nil: none.
	Log *slog.Logger
	// ProgressInterval is the least time between two writes of one host's progress, steps that the agent reports included. 0: 10 seconds.
	ProgressInterval time.Duration
}

// Service serves boot documents and agents. It is an http.Handler and keeps nothing that another replica would need.
type Service struct {
	options Options
	mux     *http.ServeMux

	mu sync.Mutex
	// reported is what this replica last heard of the agents that work, by host uid.
	reported map[string]report
}

// New checks the options and makes the service.
func New(options Options) (*Service, error) {
	if err := options.check(); err != nil {
		return nil, fmt.Errorf("netboot: %w", err)
	}
	if options.Clock == nil {
		options.Clock = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.ProgressInterval <= 0 {
		options.ProgressInterval = defaultProgressInterval
	}
	s := &Service{options: options, mux: http.NewServeMux(), reported: map[string]report{}}
	s.routes()
	return s, nil
}

// check says what in the options cannot work.
func (o Options) check() error {
	if o.Store == nil || o.Key == nil || o.Files == nil {
		return errors.New("Options.Store, Key and Files are required")
	}
	if !baseURL(o.BaseURL) {
		return fmt.Errorf("base URL %q: expected http://HOST:PORT without credentials, query and trailing slash", o.BaseURL)
	}
	for _, name := range []string{o.Kernel, o.Initrd} {
		if _, err := fs.Stat(o.Files, name); err != nil {
			return fmt.Errorf("the agent's boot file: %w", err)
		}
	}
	for _, argument := range o.KernelArguments {
		if !plainArgument(argument) {
			return fmt.Errorf("kernel argument %q: white space, control characters, \"${\", \"||\" and \"&&\" mean something else to iPXE", argument)
		}
	}
	return nil
}

// baseURL reports whether paths can be put behind the text, and the result into a script.
func baseURL(text string) bool {
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" {
		return false
	}
	return (base.Scheme == "http" || base.Scheme == "https") && !strings.HasSuffix(text, "/") && plainArgument(text)
}

// plainArgument reports whether iPXE passes the word on as it is.
func plainArgument(word string) bool {
	for _, special := range []string{"${", "||", "&&"} {
		if strings.Contains(word, special) {
			return false
		}
	}
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' })
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// bounded limits the time of a request whose body and answer are small.
func bounded(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTime)
		defer cancel()
		// A connection that knows no deadlines (a recorder in a test) has none; the context still bounds the store.
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			http.Error(w, "the connection is gone", http.StatusServiceUnavailable)
			return
		}
		handler(w, r.WithContext(ctx))
	}
}

// key reads the signing key and refuses a weak one.
func (s *Service) key(ctx context.Context) ([]byte, error) {
	key, err := s.options.Key(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the token key: %w", err)
	}
	if len(key) < minKey {
		return nil, fmt.Errorf("the token key has %d bytes, expected at least %d: look at its Secret", len(key), minKey)
	}
	return key, nil
}

// open says whether the session is one the service answers for: running, powered on by us, and in time.
func open(session Session, now time.Time) bool {
	return session.Number > 0 && session.State == hardware.AttemptRunning &&
		!session.OpenedAt.IsZero() && !now.Before(session.OpenedAt) && now.Before(session.Deadline)
}
