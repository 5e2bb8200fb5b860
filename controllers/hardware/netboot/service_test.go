package netboot

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// fakeStore is a Store of two hosts with one attempt each.
type fakeStore struct {
	sessions map[string]*Session
	updates  int
	reads    int
	err      error
	// isUnwritten is true while the config drive is not written.
	isUnwritten bool
}

func (s *fakeStore) ByMAC(_ context.Context, mac string) (Session, error) {
	s.reads++
	for _, session := range s.sessions {
		if session.BootMAC == mac {
			return *session, s.err
		}
	}
	return Session{}, hardware.Errorf(hardware.NotFound, "find host", "", "unknown")
}

func (s *fakeStore) CachedByMAC(ctx context.Context, mac string) (Session, error) {
	return s.ByMAC(ctx, mac)
}

func (s *fakeStore) CachedByUID(ctx context.Context, uid string) (Session, error) {
	return s.ByUID(ctx, uid)
}

func (s *fakeStore) ByUID(_ context.Context, uid string) (Session, error) {
	if session := s.sessions[uid]; session != nil {
		return *session, s.err
	}
	return Session{}, hardware.Errorf(hardware.NotFound, "find host", "", "unknown")
}

func (s *fakeStore) Update(_ context.Context, uid string, change func(*Session) error) (Session, error) {
	session := *s.sessions[uid]
	if err := change(&session); err != nil {
		return *s.sessions[uid], err
	}
	s.updates++
	s.sessions[uid] = &session
	return session, s.err
}

func (s *fakeStore) ConfigDrive(context.Context, string, int64) (hardware.ConfigDrive, error) {
	if s.isUnwritten {
		return hardware.ConfigDrive{}, hardware.Errorf(hardware.Busy, "read config drive", "", "not written yet")
	}
	return hardware.ConfigDrive{UserData: []byte("s3cr3t-user-data")}, s.err
}

// site is a Service on loopback with a clock that the test sets.
type site struct {
	*testing.T
	store *fakeStore
	now   time.Time
	key   []byte
	url   string
	log   bytes.Buffer
	// events are what was counted.
	events  []string
	service *Service
	// settings are what HostSettings returns.
	settings HostSettings
	// agentKey is the key that call sends.
	agentKey string
}

func newSite(t *testing.T) *site {
	s := &site{T: t, agentKey: strings.Repeat("0a", protocol.KeyBytes), now: start.Add(time.Minute), key: bytes.Repeat([]byte{1}, 32), store: &fakeStore{sessions: map[string]*Session{}}}
	for i, uid := range []string{"host-a", "host-b"} {
		s.store.sessions[uid] = &Session{
			HostUID: uid, BootMAC: "0c:42:a1:00:00:0" + string(rune('a'+i)), Work: Work{Operation: hardware.OpInstall},
			AttemptStatus: hardware.AttemptStatus{Number: 3, State: hardware.AttemptRunning, Step: hardware.StepBooting}, Since: start, OpenedAt: start, Deadline: start.Add(time.Hour),
		}
	}
	var service http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { service.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	made, err := New(Options{
		Store: s.store, Key: func(context.Context) ([]byte, error) { return s.key, nil }, Clock: func() time.Time { return s.now },
		HostSettings: func(context.Context, Session) (HostSettings, error) { return s.settings, nil },
		BaseURL:      server.URL, Files: fstest.MapFS{"k": {Data: []byte("KERNEL")}, "i": {Data: []byte("INITRD")}}, Kernel: "k", Initrd: "i",
		Media: func(commandLine string) (io.ReadSeeker, error) {
			return strings.NewReader("MEDIUM " + commandLine), nil
		},
		KernelArguments: []string{"console=ttyS0"}, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
		Count: func(event string) { s.events = append(s.events, event) },
	})
	if err != nil {
		t.Fatal(err)
	}
	service, s.service, s.url = made, made, server.URL
	return s
}

func (s *site) get(path string) (int, string) {
	s.Helper()
	response, err := http.Get(s.url + path)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// boot fetches host-a's boot document and returns its token.
func (s *site) boot() string {
	s.Helper()
	status, script := s.get("/boot/0C-42-A1-00-00-0A")
	_, rest, found := strings.Cut(script, "ingot.token=")
	if status != http.StatusOK || !found {
		s.Fatalf("status %d: %s", status, script)
	}
	return strings.Fields(rest)[0]
}

// hostRegistration is the registration of host-a's server.
const hostRegistration = `{"inventory":{"systemUUID":"dmi","nics":[{"name":"eno1","mac":"0C:42:A1:00:00:0A"}]}}`

// bootAgent boots host-a and registers its agent, and returns its token.
func (s *site) bootAgent() string {
	s.Helper()
	token := s.boot()
	if got := s.call("POST", protocol.PathRegister, token, hostRegistration); got != "" {
		s.Fatalf("registering: %s", got)
	}
	return token
}

// call sends a request of the agent and returns the code of the refusal, "" when it was served.
func (s *site) call(method, path, token, body string) protocol.Code {
	s.Helper()
	request, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if s.agentKey != "" {
		request.Header.Set(protocol.HeaderKey, s.agentKey)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	if response.StatusCode < 300 {
		return ""
	}
	var refusal protocol.Refusal
	if err := json.Unmarshal(answer, &refusal); err != nil || refusal.Code.Status() != response.StatusCode {
		s.Fatalf("status %d with body %s", response.StatusCode, answer)
	}
	if strings.Contains(string(answer), "s3cr3t") || token != "" && strings.Contains(string(answer), token) {
		s.Errorf("the refusal holds a secret: %s", answer)
	}
	return refusal.Code
}

func (s *site) drive(token string) protocol.Code {
	s.Helper()
	return s.call("GET", protocol.PathConfigDrive, token, "")
}

func (s *site) host() *Session { return s.store.sessions["host-a"] }

func TestTheBootDocumentLoadsTheAgentWithATokenForThisBoot(t *testing.T) {
	s := newSite(t)
	_, script := s.get("/boot/0c:42:a1:00:00:0a")
	for _, want := range []string{"#!ipxe\n", "kernel " + s.url + "/files/kernel?mac=0c:42:a1:00:00:0a&boot=1&arch=${buildarch} initrd=initrd ingot.url=" + s.url + " ingot.token=", " ingot.mac=0c:42:a1:00:00:0a ", " ingot.attempt=", " ingot.time=", " ingot.deadline=", " console=ttyS0 ",
		"initrd --name initrd " + s.url + "/files/initrd", "\nboot"} {
		if !strings.Contains(script, want) {
			t.Errorf("the script lacks %q:\n%s", want, script)
		}
	}
	for path, want := range map[string]string{"/files/kernel": "KERNEL", "/files/initrd": "INITRD"} {
		if status, got := s.get(path); status != http.StatusOK || got != want {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
	if s.host().Boots != 1 || s.host().Step != hardware.StepLoading {
		t.Errorf("session: %+v", s.host())
	}
	response, err := http.Head(s.url + "/boot/0c:42:a1:00:00:0a")
	if err != nil || response.StatusCode != http.StatusMethodNotAllowed || s.host().Boots != 1 {
		t.Errorf("a HEAD request counted as a boot: %v", err)
	}
	response.Body.Close()
}

func TestTheAgentIsServedToAnOpenAttemptOnly(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Session)
		want   string
	}{
		"no attempt":               {func(s *Session) { s.Number = 0 }, exitScript},
		"not powered on by us yet": {func(s *Session) { s.OpenedAt = time.Time{} }, exitScript},
		"opened later":             {func(s *Session) { s.OpenedAt = start.Add(2 * time.Minute) }, exitScript},
		"succeeded":                {func(s *Session) { s.State = hardware.AttemptSucceeded }, exitScript},
		"done, about to reboot":    {func(s *Session) { s.Step = hardware.StepFinishing }, exitScript},
		"failed":                   {func(s *Session) { s.State = hardware.AttemptFailed }, holdScript},
		"no attempt but a failure": {func(s *Session) { s.Number, s.State = 0, hardware.AttemptFailed }, exitScript},
		"failed before it began":   {func(s *Session) { s.State, s.OpenedAt = hardware.AttemptFailed, time.Time{} }, exitScript},
		"past its deadline":        {func(s *Session) { s.Deadline = start.Add(time.Minute) }, holdScript},
		"agent's inspection past a deadline": {func(s *Session) {
			s.Deadline, s.Operation, s.Inspector = start, hardware.OpInspect, hardware.InspectByAgent
		}, holdScript},
		"inspection past a deadline": {func(s *Session) { s.Deadline, s.Operation = start, hardware.OpInspect }, exitScript},
		"another host's MAC":         {func(s *Session) { s.BootMAC = "0c:42:a1:00:00:0f" }, exitScript},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			c.change(s.host())
			if status, script := s.get("/boot/0c:42:a1:00:00:0a"); status != http.StatusOK || script != c.want {
				t.Errorf("status %d: %s", status, script)
			}
			if s.host().Boots != 0 {
				t.Error("that counted as a boot")
			}
		})
	}
	s := newSite(t)
	if status, _ := s.get("/boot/not-a-mac"); status != http.StatusBadRequest {
		t.Errorf("a malformed MAC: status %d", status)
	}
	s.store.err = hardware.Errorf(hardware.Unreachable, "read", "api", "down")
	if status, _ := s.get("/boot/0c:42:a1:00:00:0a"); status != http.StatusServiceUnavailable {
		t.Errorf("the store is down: status %d", status)
	}
}

func TestTheFourthBootFailsTheAttemptAsBootLoop(t *testing.T) {
	s := newSite(t)
	var tokens []string
	for range 3 {
		tokens = append(tokens, s.boot())
	}
	for i, token := range tokens {
		want := protocol.TokenSuperseded
		if i == 2 {
			want = protocol.NotRegistered
		}
		if got := s.drive(token); got != want {
			t.Errorf("token of boot %d: %q, expected %q", i+1, got, want)
		}
	}
	if _, script := s.get("/boot/0c:42:a1:00:00:0a"); script != holdScript {
		t.Errorf("the fourth boot: %s", script)
	}
	if s.host().State != hardware.AttemptFailed || s.host().Reason != hardware.ReasonBootLoop {
		t.Errorf("session: %+v", s.host())
	}
	for _, want := range []string{"was served 3 times in attempt", "asked for again from 127.0.0.1; no agent has registered", "another machine asks with its MAC address 0c:42:a1:00:00:0a"} {
		if !strings.Contains(s.host().Message, want) {
			t.Errorf("the message lacks %q: %s", want, s.host().Message)
		}
	}
	if got := s.drive(tokens[2]); got == "" {
		t.Error("the last token still opens the config drive")
	}
}

func TestUserDataIsServedToNoOneButTheCurrentBoot(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*site, string) string
		want  protocol.Code
	}{
		"the right token":     {func(_ *site, token string) string { return token }, ""},
		"none":                {func(*site, string) string { return "" }, protocol.TokenInvalid},
		"tampered":            {func(_ *site, token string) string { return "B" + token[1:] }, protocol.TokenInvalid},
		"tampered signature":  {func(_ *site, token string) string { return token[:len(token)-2] + "A" + token[len(token)-1:] }, protocol.TokenInvalid},
		"another key":         {func(s *site, token string) string { s.key = bytes.Repeat([]byte{2}, 32); return token }, protocol.TokenInvalid},
		"key too short":       {func(s *site, token string) string { s.key = s.key[:16]; return token }, protocol.Unavailable},
		"expired":             {func(s *site, token string) string { s.now = start.Add(time.Hour); return token }, protocol.TokenExpired},
		"deadline moved up":   {func(s *site, token string) string { s.host().Deadline = s.now; return token }, protocol.AttemptClosed},
		"earlier attempt":     {func(s *site, token string) string { s.host().Number++; return token }, protocol.TokenSuperseded},
		"earlier boot":        {func(s *site, token string) string { s.now = s.now.Add(10 * time.Minute); s.boot(); return token }, protocol.TokenSuperseded},
		"powered on again":    {func(s *site, token string) string { s.host().Step = hardware.StepBooting; return token }, protocol.TokenSuperseded},
		"no key":              {func(s *site, token string) string { s.agentKey = ""; return token }, protocol.KeyInvalid},
		"a short key":         {func(s *site, token string) string { s.agentKey = s.agentKey[2:]; return token }, protocol.KeyInvalid},
		"another agent's key": {func(s *site, token string) string { s.agentKey = strings.Repeat("0b", protocol.KeyBytes); return token }, protocol.AnotherAgent},
		"no registration":     {func(s *site, token string) string { s.host().Agent = Agent{}; return token }, protocol.NotRegistered},
		"ended":               {func(s *site, token string) string { s.host().State = hardware.AttemptFailed; return token }, protocol.AttemptClosed},
		"not opened":          {func(s *site, token string) string { s.host().OpenedAt = time.Time{}; return token }, protocol.AttemptClosed},
		"opened later":        {func(s *site, token string) string { s.host().OpenedAt = s.now.Add(1); return token }, protocol.AttemptClosed},
		"done":                {func(s *site, token string) string { s.host().Step = hardware.StepFinishing; return token }, protocol.BadRequest},
		"erase":               {func(s *site, token string) string { s.host().Operation = hardware.OpErase; return token }, protocol.BadRequest},
		"host is gone":        {func(s *site, token string) string { delete(s.store.sessions, "host-a"); return token }, protocol.AttemptClosed},
		"store is down":       {func(s *site, token string) string { s.store.err = io.ErrClosedPipe; return token }, protocol.Unavailable},
		"other host's token":  {func(s *site, _ string) string { return s.forged("host-b") }, protocol.TokenSuperseded},
		"host that never was": {func(s *site, _ string) string { return s.forged("host-c") }, protocol.AttemptClosed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			token := c.spoil(s, s.bootAgent())
			if got := s.drive(token); got != c.want {
				t.Errorf("%q, expected %q", got, c.want)
			}
			if token != "" && (strings.Contains(s.log.String(), token) || s.agentKey != "" && strings.Contains(s.log.String(), s.agentKey) || strings.Contains(s.log.String(), "s3cr3t")) {
				t.Error("the log holds the token or user data")
			}
		})
	}
}

// forged returns a correctly signed token with host-a's numbers for another host.
func (s *site) forged(uid string) string {
	return signToken(s.key, claims{hostUID: uid, attempt: 3, boot: 1, expires: start.Add(time.Hour)})
}

func TestProgressIsWrittenByQuartersAndNoStepForLessThanAnInterval(t *testing.T) {
	s := newSite(t)
	token := s.bootAgent()
	for i, c := range []struct {
		after  time.Duration
		body   string
		writes int
		want   protocol.Code
	}{
		{0, `{"step":"Writing","doneBytes":0,"totalBytes":100}`, 0, ""},
		{10 * time.Second, `{"step":"Writing","doneBytes":10,"totalBytes":100}`, 1, ""},
		{9 * time.Second, `{"step":"Writing","doneBytes":60,"totalBytes":100}`, 0, ""},
		{time.Second, `{"step":"Writing","doneBytes":60,"totalBytes":100}`, 1, ""},
		{10 * time.Second, `{"step":"Writing","doneBytes":70,"totalBytes":100}`, 0, ""},
		{50 * time.Second, `{"step":"Writing","doneBytes":71,"totalBytes":100}`, 1, ""},
		{time.Second, `{"step":"Verifying","doneBytes":100,"totalBytes":100}`, 0, ""},
		{10 * time.Second, `{"step":"Verifying","doneBytes":100,"totalBytes":100}`, 1, ""},
		{50 * time.Second, `{"step":"Verifying","doneBytes":100,"totalBytes":100}`, 0, ""},
		{10 * time.Second, `{"step":"Verifying","doneBytes":100,"totalBytes":100}`, 1, ""},
		{time.Second, `{"step":"Finishing","doneBytes":100,"totalBytes":100}`, 0, protocol.BadRequest},
		{time.Second, `{"step":"Writing","doneBytes":-1,"totalBytes":100}`, 0, protocol.BadRequest},
		{time.Second, `{"step":"Writing","doneBytes":1,"totalBytes":100,"extra":1}`, 0, protocol.BadRequest},
		{time.Second, `{"step":"Writing"} {}`, 0, protocol.BadRequest},
		{time.Second, `{"step":"` + strings.Repeat("x", protocol.MaxRequest) + `"}`, 0, protocol.BadRequest},
	} {
		s.now = s.now.Add(c.after)
		before := s.store.updates
		if got := s.call("POST", protocol.PathProgress, token, c.body); got != c.want || s.store.updates-before != c.writes {
			t.Errorf("report %d: %q with %d writes, expected %q with %d", i, got, s.store.updates-before, c.want, c.writes)
		}
	}
	if s.host().DoneBytes != 100 || s.host().Step != hardware.StepVerifying {
		t.Errorf("session: %+v", s.host())
	}
}

func TestAFailedResultEndsTheAttemptAndASuccessfulOneDoesNot(t *testing.T) {
	s := newSite(t)
	token := s.bootAgent()
	if got := s.call("POST", protocol.PathResult, token, `{"reason":"BootLoop"}`); got != protocol.BadRequest {
		t.Errorf("a reason that is not the agent's: %q", got)
	}
	for range 2 { // the answer to the first may have been lost
		if got := s.call("POST", protocol.PathResult, token, `{}`); got != "" {
			t.Errorf("result: %q", got)
		}
	}
	if s.host().State != hardware.AttemptRunning || s.host().Step != hardware.StepFinishing {
		t.Errorf("session: %+v", s.host())
	}
	s = newSite(t)
	token = s.bootAgent()
	message := strings.Repeat("é", protocol.MaxMessage) + "\x1b[31m"
	body, err := json.Marshal(protocol.Result{Reason: hardware.ReasonDiskError, Message: "\x1b[31m" + message})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.call("POST", protocol.PathResult, token, string(body)); got != "" {
		t.Errorf("result: %q", got)
	}
	if h := s.host(); h.State != hardware.AttemptFailed || h.Reason != hardware.ReasonDiskError || len(h.Message) > protocol.MaxMessage || strings.ContainsRune(h.Message, 0x1b) {
		t.Errorf("session: %s %s, message of %d bytes", h.State, h.Reason, len(h.Message))
	}
	if got := s.call("POST", protocol.PathRegister, token, `{"inventory":{}}`); got != protocol.AttemptClosed {
		t.Errorf("registering after the end: %q", got)
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	good := func() Options {
		return Options{Store: &fakeStore{}, Key: func(context.Context) ([]byte, error) { return nil, nil }, BaseURL: "http://10.0.0.1:8080",
			Files: fstest.MapFS{"k": {}, "i": {}}, Kernel: "k", Initrd: "i", KernelArguments: []string{"a=~!"}}
	}
	if _, err := New(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Options){
		"no store": func(o *Options) { o.Store = nil }, "no key": func(o *Options) { o.Key = nil }, "no files": func(o *Options) { o.Files = nil },
		"slash": func(o *Options) { o.BaseURL += "/" }, "no scheme": func(o *Options) { o.BaseURL = "10.0.0.1" },
		"credentials": func(o *Options) { o.BaseURL = "http://u:p@h" }, "no kernel": func(o *Options) { o.Kernel = "x" },
		"iPXE variable": func(o *Options) { o.KernelArguments = []string{"a=${b}"} }, "new line": func(o *Options) { o.KernelArguments = []string{"a\nshell"} }, "space": func(o *Options) { o.KernelArguments = []string{"a b"} },
	} {
		options := good()
		spoil(&options)
		if _, err := New(options); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestAHostIsGivenTheAddressThatItReaches(t *testing.T) {
	s := newSite(t)
	s.settings.URL = "http://10.20.0.2:8090"
	_, script := s.get("/boot/0C-42-A1-00-00-0A")
	for _, want := range []string{"kernel http://10.20.0.2:8090/files/kernel", "ingot.url=http://10.20.0.2:8090 ", "chain --replace --autofree http://10.20.0.2:8090/boot/"} {
		if !strings.Contains(script, want) {
			t.Errorf("the script lacks %q:\n%s", want, script)
		}
	}
	s.settings.URL = "http://10.20.0.2:8090/${evil}"
	if status, _ := s.get("/boot/0C-42-A1-00-00-0B"); status != http.StatusServiceUnavailable {
		t.Errorf("an address that iPXE would read otherwise: status %d", status)
	}
	if boots := s.store.sessions["host-b"].Boots; boots != 0 {
		t.Errorf("a boot that was not served counts: %d", boots)
	}
}

func TestAFileThatIsGoneIsReported(t *testing.T) {
	s := newSite(t)
	s.service.options.Files = fstest.MapFS{"k": {Data: []byte("KERNEL")}}
	response, err := http.Get(s.url + "/files/initrd")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(s.log.String(), "boot.files") {
		t.Errorf("status %s, log %s", response.Status, s.log.String())
	}
}
