package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/bmc/bmctest"
)

// imageServer is a server whose firmware is the test, with a BMC that quotes the URLs that it refuses.
type imageServer struct {
	*bmctest.Server

	mu sync.Mutex
	// urls are those of images that the BMC was given.
	urls map[string]bool
}

// Name implements named.
func (*imageServer) Name() string { return "image-server" }

// imageURL finds the URL of an image in a request to a BMC.
var imageURL = regexp.MustCompile(`https?://[^"]*/media/[^"]+`)

func startImageServer(t *testing.T, personality bmc.Personality) *imageServer {
	t.Helper()
	s := &imageServer{Server: bmctest.Start(t, personality), urls: map[string]bool{}}
	s.Intercept(func(_ http.ResponseWriter, q *http.Request) bool {
		body, err := io.ReadAll(q.Body)
		q.Body = io.NopCloser(bytes.NewReader(body))
		s.mu.Lock()
		defer s.mu.Unlock()
		if found := imageURL.Find(body); err == nil && found != nil {
			s.urls[string(found)] = true
		}
		return false
	})
	return s
}

// secrets returns what must not be shown: the secret of each URL, and its signature alone.
func (s *imageServer) secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for url := range maps.Keys(s.urls) {
		parts := strings.Split(url, "/")
		secret := parts[len(parts)-2]
		out = append(out, secret, secret[strings.LastIndexByte(secret, '.')+1:])
	}
	return out
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *syncBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// written returns everything that the process wrote, by the place.
func (r *rig) written(log *syncBuffer) map[string]string {
	r.t.Helper()
	places := map[string]string{"log": log.String()}
	for _, list := range []client.ObjectList{&metal3.BareMetalHostList{}, &v1alpha1.HostRecordList{}, &corev1.EventList{}, &eventsv1.EventList{}, &corev1.ConfigMapList{}, &v1alpha1.NodeProviderList{}} {
		if err := server.Client.List(r.t.Context(), list); err != nil {
			r.t.Fatal(err)
		}
		text, err := json.Marshal(list)
		if err != nil {
			r.t.Fatal(err)
		}
		places[fmt.Sprintf("%T", list)] = string(text)
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	places["metrics"] = fmt.Sprint(families)
	return places
}

// expectNoSecret checks that nothing that the process wrote has a secret, and that all of the words are there, so that what is searched is the right thing.
func (r *rig) expectNoSecret(log *syncBuffer, secrets []string, words ...string) {
	r.t.Helper()
	places := r.written(log)
	for place, text := range places {
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				r.t.Errorf("the secret of an image is in the %s: %s", place, text[max(0, at-200):at+20])
			}
		}
	}
	all := strings.Join(slices.Collect(maps.Values(places)), "\n")
	for _, word := range words {
		if !strings.Contains(all, word) {
			r.t.Errorf("nothing that was written has %q", word)
		}
	}
}

// newImageRig makes a rig whose NodeProvider prefers images of the server's own, and a host for the server.
func newImageRig(t *testing.T, s *imageServer, log *syncBuffer) *rig {
	t.Helper()
	r := newRigWith(t, 1, 0, func(r *rig) {
		r.log, r.bootTimeout = log, time.Second
		r.ways = []v1alpha1.BootWay{v1alpha1.BootWayPinnedHTTP, v1alpha1.BootWayVirtualMedia}
	})
	endpoint := s.Endpoint()
	server.Create(t, &corev1.Secret{ObjectMeta: r.meta(s.Name() + "-bmc"), StringData: map[string]string{"username": endpoint.Username, "password": endpoint.Password}},
		&metal3.BareMetalHost{ObjectMeta: r.meta(s.Name()), Spec: metal3.BareMetalHostSpec{BootMACAddress: imageMAC, BMC: metal3.BMCDetails{
			Address: "redfish+" + endpoint.Address + bmc.PathSystem, CredentialsName: s.Name() + "-bmc", DisableCertificateVerification: true}}})
	r.await(s, "it is available", inState(metal3.StateAvailable))
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	return r
}

// imageMAC is that of the server's boot NIC, which bmctest's hardware has.
const imageMAC = "52:54:00:aa:00:01"

// TestTheURLOfAnImageIsShownNowhere has firmware load nothing from its pinned URL, twice, and then the agent from its medium.
func TestTheURLOfAnImageIsShownNowhere(t *testing.T) {
	s, log := startImageServer(t, bmc.Personality{Boot: bmc.BootRules{HTTPBootURI: bmc.URIKept}}), &syncBuffer{}
	r := newImageRig(t, s, log)
	var pinned string
	eventually(t, "a URL is pinned", func() bool { pinned = s.PinnedURI(); return pinned != "" })
	fetch(t, http.MethodHead, pinned, http.StatusOK)
	fetch(t, http.MethodGet, strings.Replace(pinned, hardware.PinnedFileName, hardware.MediaFileName, 1), http.StatusNotFound)
	eventually(t, "a medium is inserted", func() bool { return s.Media() != "" && s.Power() == hardware.PowerOn })
	medium := s.Media()
	fetch(t, http.MethodGet, strings.Replace(medium, "/"+hardware.MediaFileName, "x/"+hardware.MediaFileName, 1), http.StatusNotFound)
	fetch(t, http.MethodGet, pinned, http.StatusNotFound)
	line := fetch(t, http.MethodGet, medium, http.StatusOK)
	found := regexp.MustCompile(cmdline.ArgToken + `=(\S+)`).FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("the medium has no token: %s", line)
	}
	agent := imageAgent{t: t, url: r.bootURL, token: found[1]}
	agent.post(protocol.PathRegister, protocol.Registration{Inventory: hardware.Inventory{SerialNumber: "SN0001", NICs: []hardware.NIC{{Name: "eno1", MAC: imageMAC}}}})
	eventually(t, "the medium is ejected", func() bool { return s.Media() == "" && s.PinnedURI() == "" })
	agent.post(protocol.PathResult, protocol.Result{Reason: hardware.ReasonDiskError, Message: "the disk is broken"})
	r.await(s, "the attempt has failed", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.Status.Attempt != nil && record.Status.Attempt.Reason == string(hardware.ReasonDiskError)
	})
	r.unassignNamed(s)
	eventually(t, "the server is off", func() bool { return s.Power() == hardware.PowerOff })
	r.stop()
	if n := len(s.secrets()); n < 6 { // two URLs pinned, one inserted
		t.Errorf("%d secrets were seen", n)
	}
	r.expectNoSecret(log, append(s.secrets(), agent.token), "BootWaySilent", "the disk is broken", "boot again")
}

// TestTheURLOfAnImageThatABMCQuotesIsShownNowhere has a BMC that refuses every URL and repeats it.
func TestTheURLOfAnImageThatABMCQuotesIsShownNowhere(t *testing.T) {
	for name, c := range map[string]struct {
		rules  bmc.MediaRules
		faults bmc.Faults
		says   string
	}{
		"a refusal":        {bmc.MediaRules{Refusal: bmc.Refusal{Status: http.StatusForbidden, Message: "SMC.1.0.OemLicenseNotPassed"}}, bmc.Faults{}, "/media/***/ingot-agent.iso is not inserted: a licence is required"},
		"a task's failure": {bmc.MediaRules{Task: bmc.TaskResource, TaskReads: 1}, bmc.Faults{LostImages: bmc.All}, "failed to establish a connection with the URI"},
	} {
		t.Run(name, func(t *testing.T) {
			s, log := startImageServer(t, bmc.Personality{Boot: bmc.BootRules{HTTPBootURI: bmc.URIRefused}, Media: c.rules}), &syncBuffer{}
			s.SetFaults(c.faults)
			r := newImageRig(t, s, log)
			r.await(s, "the refusal is shown", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
				return record.Status.Error != nil && strings.Contains(record.Status.Error.Message, c.says)
			})
			r.stop()
			r.expectNoSecret(log, s.secrets(), c.says, "cannot be assigned the value")
		})
	}
}

// unassignNamed takes the image away, which releases the host.
func (r *rig) unassignNamed(s named) {
	r.t.Helper()
	r.edit(s, func(h *metal3.BareMetalHost) {
		h.Spec.Image, h.Spec.UserData, h.Spec.NetworkData, h.Spec.MetaData, h.Spec.Online = nil, nil, nil, nil, false
	})
}

// fetch requests a URL as firmware does, and returns the body.
func fetch(t *testing.T, method, url string, status int) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		t.Errorf("%s of an image: %s, expected %d; %v", method, response.Status, status, err)
	}
	return string(body)
}

// imageAgent is an agent that the test speaks for.
type imageAgent struct {
	t          *testing.T
	url, token string
}

func (a imageAgent) post(path string, message any) {
	a.t.Helper()
	body, err := json.Marshal(message)
	if err != nil {
		a.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url+path, bytes.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set(protocol.HeaderKey, strings.Repeat("ab", 32))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		answer, _ := io.ReadAll(response.Body)
		a.t.Fatalf("%s: %s %s", path, response.Status, answer)
	}
}
