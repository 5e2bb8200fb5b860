package osimage

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

var (
	sha256Hex = strings.Repeat("9b", 32)
	sha512Hex = strings.Repeat("7c", 64)
)

func TestDigestsAreFoundInEveryUsualForm(t *testing.T) {
	for _, c := range []struct {
		name, content, digest string
		found                 bool
	}{
		{"sha256sum, text mode", sha256Hex + "  debian.raw\n", "sha256:" + sha256Hex, true},
		{"sha256sum, binary mode and a directory", sha256Hex + " *./images/debian.raw\r\n", "sha256:" + sha256Hex, true},
		{"upper case", strings.ToUpper(sha256Hex) + "  debian.raw", "sha256:" + sha256Hex, true},
		{"sha512sum", sha512Hex + "  debian.raw\n", "sha512:" + sha512Hex, true},
		{"BSD", "SHA256 (debian.raw) = " + sha256Hex + "\n", "sha256:" + sha256Hex, true},
		{"openssl dgst", "SHA2-512(debian.raw)= " + sha512Hex + "\n", "sha512:" + sha512Hex, true},
		{"a lone digest", sha256Hex + "\n", "sha256:" + sha256Hex, true},
		{"the stronger of two", "SHA256 (debian.raw) = " + sha256Hex + "\nSHA512 (debian.raw) = " + sha512Hex + "\n", "sha512:" + sha512Hex, true},
		{"another file's line", sha256Hex + "  other-debian.raw\n", "", false},
		{"a name that only begins so", sha256Hex + "  debian.raw.zst\n", "", false},
		{"only MD5", "MD5 (debian.raw) = " + strings.Repeat("a", 32) + "\n", "", true},
		{"another algorithm of that length", "BLAKE2S (debian.raw) = " + sha256Hex + "\n", "", true},
		{"a digest that was cut", sha256Hex[:60] + "  debian.raw\n", "", true},
		{"no checksum file at all", "<html>not found</html>", "", false},
		{"nothing", "", "", false},
	} {
		if digest, found := findDigest(c.content, "debian.raw"); digest != c.digest || found != c.found {
			t.Errorf("%s: %q, found %v", c.name, digest, found)
		}
	}
}

// site is an image server whose manners can be changed.
type site struct {
	*httptest.Server
	noHead, noLength, down atomic.Bool
	sums                   atomic.Value
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	s.sums.Store(sha256Hex + "  debian.raw\n")
	mux := http.NewServeMux()
	mux.HandleFunc("/SHA256SUMS", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s.sums.Load().(string))) })
	mux.HandleFunc("/debian.raw", func(w http.ResponseWriter, request *http.Request) {
		switch {
		case s.down.Load():
			w.WriteHeader(http.StatusBadGateway)
		case s.noHead.Load() && request.Method == http.MethodHead:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case s.noLength.Load():
			w.(http.Flusher).Flush()
		default:
			http.ServeContent(w, request, "", time.Time{}, strings.NewReader(strings.Repeat("x", 4096)))
		}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

type fixture struct {
	*Reconciler
	clock    *clocktesting.FakePassiveClock
	recorder *events.FakeRecorder
}

func newFixture() *fixture {
	f := &fixture{
		clock:    clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)),
		recorder: events.NewFakeRecorder(16),
	}
	f.Reconciler = &Reconciler{Client: server.Client, Recorder: f.recorder, HTTP: http.DefaultClient, Clock: f.clock, Jitter: func() float64 { return 0.5 }}
	return f
}

func newImage(t *testing.T, name, url, checksum string) *v1alpha1.OSImage {
	t.Helper()
	image := &v1alpha1.OSImage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.OSImageSpec{
		URL: url, Checksum: checksum, Format: v1alpha1.FormatRaw,
		OS: v1alpha1.OSImageOS{ID: "debian", Version: "13"}, Software: v1alpha1.OSImageSoftware{Kubelet: "1.37.0"},
	}}
	server.Create(t, image)
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), image) })
	return image
}

// reconcile runs once and returns the stored image, its Ready condition and the time until the next look.
func (f *fixture) reconcile(t *testing.T, image *v1alpha1.OSImage) (*v1alpha1.OSImage, metav1.Condition, time.Duration) {
	t.Helper()
	result, err := f.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(image)})
	if err != nil {
		t.Fatal(err)
	}
	var stored v1alpha1.OSImage
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(image), &stored); err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		t.Fatal("no Ready condition")
	}
	return &stored, *ready, result.RequeueAfter
}

func TestAFloatingChecksumIsResolvedOnceAndPinned(t *testing.T) {
	s, f := newSite(t), newFixture()
	image := newImage(t, "floating", s.URL+"/debian.raw", s.URL+"/SHA256SUMS")
	stored, ready, after := f.reconcile(t, image)
	if ready.Reason != v1alpha1.ReasonReady || stored.Status.Checksum != "sha256:"+sha256Hex || *stored.Status.SizeBytes != 4096 {
		t.Errorf("status %+v", stored.Status)
	}
	if after != 10*time.Minute+30*time.Second {
		t.Errorf("looks again after %s", after)
	}
	s.sums.Store(strings.Repeat("00", 32) + "  debian.raw\n")
	f.clock.SetTime(f.clock.Now().Add(11 * time.Minute))
	if stored, _, _ = f.reconcile(t, image); stored.Status.Checksum != "sha256:"+sha256Hex {
		t.Errorf("the pinned checksum became %s", stored.Status.Checksum)
	}
}

func TestAnImageThatVanishesIsNoticedAndKeepsItsChecksum(t *testing.T) {
	s, f := newSite(t), newFixture()
	image := newImage(t, "vanishing", s.URL+"/debian.raw?signature=s3cr3t", "sha256:"+sha256Hex)
	f.reconcile(t, image)
	s.down.Store(true)
	if _, ready, after := f.reconcile(t, image); ready.Reason != v1alpha1.ReasonReady || after != 10*time.Minute {
		t.Errorf("%s after %s: it was checked before it was due", ready.Reason, after)
	}
	f.clock.SetTime(f.clock.Now().Add(10 * time.Minute))
	stored, ready, after := f.reconcile(t, image)
	if ready.Reason != v1alpha1.ReasonImageUnreachable || !strings.Contains(ready.Message, "502") || stored.Status.Checksum == "" || after > 2*time.Minute {
		t.Errorf("%+v, looks again after %s", ready, after)
	}
	if strings.Contains(ready.Message, "s3cr3t") {
		t.Errorf("the message quotes the URL's signature: %s", ready.Message)
	}
	if len(f.recorder.Events) != 2 {
		t.Errorf("%d events, want one per change", len(f.recorder.Events))
	}
}

func TestServersWithoutHeadOrWithoutLengthAreUnderstood(t *testing.T) {
	s, f := newSite(t), newFixture()
	s.noHead.Store(true)
	if stored, ready, _ := f.reconcile(t, newImage(t, "no-head", s.URL+"/debian.raw", "sha256:"+sha256Hex)); ready.Reason != v1alpha1.ReasonReady || *stored.Status.SizeBytes != 4096 {
		t.Errorf("status %+v", stored.Status)
	}
	s.noLength.Store(true)
	stored, ready, _ := f.reconcile(t, newImage(t, "no-length", s.URL+"/debian.raw", "sha256:"+sha256Hex))
	if ready.Status != metav1.ConditionTrue || ready.Reason != v1alpha1.ReasonSizeUnknown || stored.Status.SizeBytes != nil {
		t.Errorf("status %+v", stored.Status)
	}
}

func TestWhatIsWrongWithAChecksumFileIsSaid(t *testing.T) {
	s, f := newSite(t), newFixture()
	for _, c := range []struct{ name, sums, file, reason string }{
		{"missing-file", "", "/nothing", v1alpha1.ReasonImageUnreachable},
		{"missing-line", sha256Hex + "  other.raw\n", "/SHA256SUMS", v1alpha1.ReasonChecksumNotFound},
		{"cut-line", sha256Hex[:10] + "  debian.raw\n", "/SHA256SUMS", v1alpha1.ReasonChecksumInvalid},
	} {
		s.sums.Store(c.sums)
		if stored, ready, _ := f.reconcile(t, newImage(t, c.name, s.URL+"/debian.raw", s.URL+c.file)); ready.Reason != c.reason || stored.Status.Checksum != "" {
			t.Errorf("%s: %+v", c.name, stored.Status)
		}
	}
}

func FuzzFindDigestSurvivesAnyFile(f *testing.F) {
	f.Add("SHA256 (debian.raw) = " + sha256Hex)
	f.Fuzz(func(t *testing.T, content string) {
		if digest, _ := findDigest(content, "debian.raw"); digest != "" && len(digest) != 71 && len(digest) != 135 {
			t.Errorf("digest %q", digest)
		}
	})
}
