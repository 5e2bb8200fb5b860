package agent_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

func TestABrokenOrStalledDownloadGoesOnWhereItBroke(t *testing.T) {
	image := plainImage(24 * mib)
	for name, ranges := range map[string]bool{"server with ranges": true, "server without": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, image, "raw", hardware.ConfigDrive{})
			requests := 0
			flaky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				requests++
				if !ranges {
					q.Header.Del("Range")
				}
				w.Header().Set("ETag", `"one"`)
				if requests <= 3 {
					w = &breakingWriter{ResponseWriter: w, left: requests * 5 * mib, stall: requests == 2, gone: q.Context().Done()}
				}
				http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(image))
			}))
			defer flaky.Close()
			r.change(hintOneMiB)
			r.change(func(s *netboot.Session) { s.Image.URL = flaky.URL + "/image?signature=s3cr3t" })
			disk := newMemoryDisk(24*mib, 0xFF)
			config := r.config(r.boot(), disk)
			config.StallTimeout = 50 * time.Millisecond
			if _, err := agent.Run(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(disk.data, image) || requests < 3 {
				t.Errorf("%d requests, the disk equals the image: %v", requests, bytes.Equal(disk.data, image))
			}
			if strings.Contains(r.log.String(), "s3cr3t") {
				t.Error("the log holds the image URL's query")
			}
		})
	}
}

// breakingWriter breaks the connection, or stalls, after so many bytes.
type breakingWriter struct {
	http.ResponseWriter
	left  int
	stall bool
	gone  <-chan struct{}
}

func (w *breakingWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left > 0 {
		return w.ResponseWriter.Write(p)
	}
	if w.stall {
		<-w.gone
	}
	panic(http.ErrAbortHandler)
}

func TestADownloadWithoutRangesStartsAgainAndMayBeSlowWhileItSkips(t *testing.T) {
	const stallTimeout = 50 * time.Millisecond
	image := plainImage(24 * mib)
	for name, refuse := range map[string]func(http.ResponseWriter, *http.Request){
		"ignored":            func(http.ResponseWriter, *http.Request) {},
		"not satisfiable":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestedRangeNotSatisfiable) },
		"refused by a proxy": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) },
		"answered with the wrong range": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-9/10")
			w.WriteHeader(206)
		},
		"answered as partial without it": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(206) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, image, "raw", hardware.ConfigDrive{})
			whole := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if q.Header.Get("Range") != "" && name != "ignored" {
					refuse(w, q)
					return
				}
				q.Header.Del("Range")
				if whole++; whole == 1 {
					w = &breakingWriter{ResponseWriter: w, left: 12 * mib}
				} else {
					w = &pausingWriter{ResponseWriter: w, at: 3 * mib, pause: 4 * stallTimeout, gone: q.Context().Done()}
				}
				http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(image))
			}))
			defer server.Close()
			r.change(hintOneMiB)
			r.change(func(s *netboot.Session) { s.Image.URL = server.URL })
			disk := newMemoryDisk(24*mib, 0xFF)
			config := r.config(r.boot(), disk)
			config.StallTimeout = stallTimeout
			if _, err := agent.Run(t.Context(), config); err != nil || !bytes.Equal(disk.data, image) {
				t.Errorf("%v, %d downloads of the whole file, the disk equals the image: %v", err, whole, bytes.Equal(disk.data, image))
			}
		})
	}
}

// pausingWriter sends nothing for the pause, once, when so many bytes were sent.
type pausingWriter struct {
	http.ResponseWriter
	sent, at int
	pause    time.Duration
	gone     <-chan struct{}
}

func (w *pausingWriter) Write(p []byte) (int, error) {
	if before := w.sent; before < w.at && before+len(p) >= w.at {
		select {
		case <-w.gone:
		case <-time.After(w.pause):
		}
	}
	w.sent += len(p)
	return w.ResponseWriter.Write(p)
}

func TestAStalledDownloadSaysSo(t *testing.T) {
	r := newRig(t, nil, "raw", hardware.ConfigDrive{})
	stalled := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }))
	defer stalled.Close()
	r.change(hintOneMiB)
	r.change(func(s *netboot.Session) { s.Image.URL = stalled.URL })
	disk := newMemoryDisk(8*mib, 0xFF)
	config := r.config(r.boot(), disk)
	config.StallTimeout = 5 * time.Millisecond
	_, err := agent.Run(t.Context(), config)
	checkFailed(t, r, err, hardware.ReasonImageUnreachable, disk)
	if message := r.session().Message; !strings.Contains(message, "sent nothing") {
		t.Errorf("message: %s", message)
	}
}

func TestAnImageServerIsAskedInVainForTheFirstByteForALittleMoreThanAMinute(t *testing.T) {
	image := plainImage(4 * mib)
	for name, c := range map[string]struct {
		// breaks is how many requests fail, each after 20 seconds. The one that the number sent names has sent some bytes by then.
		breaks, sent int
		isRead       bool
	}{
		"it never answers":              {breaks: 100},
		"it answers after 40 seconds":   {breaks: 2, isRead: true},
		"it breaks for longer later on": {breaks: 6, sent: 1, isRead: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock, requests := skippingClock{skipped: &atomic.Int64{}}, 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if requests++; requests > c.breaks {
					http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(image))
					return
				}
				clock.skipped.Add(int64(20 * time.Second))
				if requests == c.sent {
					w = &breakingWriter{ResponseWriter: w, left: 2 * mib}
					http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(image))
				}
				panic(http.ErrAbortHandler)
			}))
			defer server.Close()
			r := newRig(t, image, "raw", hardware.ConfigDrive{})
			r.change(hintOneMiB)
			r.change(func(s *netboot.Session) { s.Image.URL = server.URL })
			disk := newMemoryDisk(8*mib, 0xFF)
			config := r.config(r.boot(), disk)
			config.Clock = clock
			_, err := agent.Run(t.Context(), config)
			if c.isRead {
				if err != nil || !bytes.Equal(disk.data[:len(image)], image) {
					t.Errorf("%v after %d requests", err, requests)
				}
				return
			}
			checkFailed(t, r, err, hardware.ReasonImageUnreachable, disk)
			if asked := time.Duration(clock.skipped.Load()); asked < 75*time.Second || asked > 110*time.Second {
				t.Errorf("it was asked %d times in %s", requests, asked)
			}
		})
	}
}

// TestAnImageServerThatAcceptsConnectionsAndSendsNothingIsLateAsWell: the stall time-out alone would end the first of its connections after a minute.
func TestAnImageServerThatAcceptsConnectionsAndSendsNothingIsLateAsWell(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter){
		"no answer": func(http.ResponseWriter) {},
		"no body":   func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				begin(w)
				<-q.Context().Done()
			}))
			defer silent.Close()
			r := newRig(t, nil, "raw", hardware.ConfigDrive{})
			r.change(hintOneMiB)
			r.change(func(s *netboot.Session) { s.Image.URL = silent.URL })
			disk := newMemoryDisk(8*mib, 0xFF)
			config := r.config(r.boot(), disk)
			config.FirstByteTimeout = 100 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := agent.Run(ctx, config)
			checkFailed(t, r, err, hardware.ReasonImageUnreachable, disk)
		})
	}
}

func TestAnImageThatCannotBeReadIsUnreachableAndItsCredentialsStayPrivate(t *testing.T) {
	for name, status := range map[string]int{"not found": 404, "always failing": 500} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, "raw", hardware.ConfigDrive{})
			gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			defer gone.Close()
			r.change(hintOneMiB)
			r.change(func(s *netboot.Session) {
				s.Image.URL = strings.Replace(gone.URL, "://", "://user:s3cr3t@", 1) + "/image?signature=s3cr3t"
			})
			disk := newMemoryDisk(8*mib, 0xFF)
			_, err := r.run(t.Context(), disk)
			checkFailed(t, r, err, hardware.ReasonImageUnreachable, disk)
			if text := r.session().Message + err.Error() + r.log.String(); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "/image") {
				t.Errorf("message: %s", text)
			}
			if len(disk.trace) > 0 {
				t.Error("the disk was touched for an image that is not there")
			}
		})
	}
}

func TestAnImageServerThatIsNotTrustedFailsTheAttemptAtOnce(t *testing.T) {
	image, requests := plainImage(4*mib), 0
	private := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer private.Close()
	r := newRig(t, image, "raw", hardware.ConfigDrive{})
	r.change(hintOneMiB)
	r.change(func(s *netboot.Session) { s.Image.URL = private.URL + "/image" })
	disk := newMemoryDisk(8*mib, 0xFF)
	_, err := r.run(t.Context(), disk)
	checkFailed(t, r, err, hardware.ReasonImageUnreachable, disk)
	if requests != 0 || strings.Contains(r.log.String(), "download broke") {
		t.Errorf("it was tried again: %s", r.log.String())
	}
}

func TestTheCABundleOfTheInstructionsIsTrusted(t *testing.T) {
	image := plainImage(4 * mib)
	private := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(image))
	}))
	defer private.Close()
	r := newRig(t, image, "raw", hardware.ConfigDrive{})
	r.change(hintOneMiB)
	r.settings.CABundle = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: private.Certificate().Raw}))
	r.change(func(s *netboot.Session) { s.Image.URL = private.URL + "/image" })
	if _, err := r.run(t.Context(), newMemoryDisk(8*mib, 0xFF)); err != nil {
		t.Error(err)
	}
}
