package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	hostplan "github.com/ingot-dev/ingot/controllers/plan/host"
)

const head = "apiVersion: config.ingot.dev/v1alpha1\nkind: ManagerConfiguration\n"

func TestAFileIsReadOverTheDefaults(t *testing.T) {
	s, err := Read(strings.NewReader(head + "boot: {url: \"http://10.0.0.2:8090\"}\ntimeouts: {joining: 5m}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Timeouts.Joining.Minutes() != 5 || s.Boot.Address != ":8090" || s.Timeouts.Claiming != Default().Timeouts.Claiming {
		t.Errorf("got %+v", s)
	}
}

func TestWhatMakesNoSenseIsRefusedByItsName(t *testing.T) {
	url := "boot: {url: \"http://10.0.0.2:8090\"}\n"
	for _, c := range []struct{ name, file, want string }{
		{"a field that is not known", head + url + "intervall: {}\n", `unknown field "intervall"`},
		{"a nested field that is not known", head + "boot: {url: \"http://10.0.0.2:8090\", adress: x}\n", `unknown field "adress"`},
		{"a field given twice", head + url + "concurrency: 3\nconcurrency: 4\n", `"concurrency" already set`},
		{"another kind", "apiVersion: v1\nkind: ConfigMap\n" + url, "apiVersion, kind: got"},
		{"a boot URL of another kind", head + "boot: {url: 'ftp://10.20.0.2'}\n", "boot.url: got \"ftp"},
		{"an address without a port", head + url + "health: {address: localhost}\n", "health.address: got \"localhost\""},
		{"a webhook's address without a port", head + url + "webhook: {address: localhost}\n", "webhook.address: got \"localhost\""},
		{"a webhook without a Secret", head + url + "webhook: {certificateSecret: \"\"}\n", "webhook.certificateSecret: got \"\""},
		{"a level that does not exist", head + url + "log: {level: loud}\n", "log.level: got \"loud\""},
		{"a negative time-out", head + url + "timeouts: {joining: -1s}\n", "timeouts.joining: got -1s"},
		{"a drain longer than the release", head + url + "timeouts: {drain: 2h}\n", "timeouts.drain: got 2h0m0s"},
		{"a step that may last longer than the whole", head + url + "timeouts: {steps: {boot: 45m}}\n", "timeouts.steps.boot: got 45m0s; expected less than timeouts.hosts.install"},
		{"an installation longer than its phase", head + url + "timeouts: {hosts: {install: 2h}}\n", "timeouts.hosts.install: got 2h0m0s; expected less than timeouts.provisioning"},
		{"a step without time", head + url + "timeouts: {steps: {silence: 0s}}\n", "timeouts.steps.silence: got 0s"},
		{"a duration without unit", head + url + "timeouts: {joining: 5}\n", "ManagerConfiguration"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestTheDefaultsAreComplete(t *testing.T) {
	s := Default()
	s.Boot.URL = "http://10.0.0.2:8090"
	text, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(strings.NewReader(string(text))); err != nil {
		t.Errorf("the defaults, written and read again: %v", err)
	}
}

func TestTimeOutsReachTheHostControllerAndTheInstaller(t *testing.T) {
	s, err := Read(strings.NewReader(head + "boot: {url: \"http://10.0.0.2:8090\"}\n" +
		"timeouts: {provisioning: 3h, hosts: {install: 2h, retry: 7s}, steps: {boot: 40m}}\nintervals: {working: 3s}\n"))
	if err != nil {
		t.Fatal(err)
	}
	wantPlan, wantSteps := hostplan.DefaultTimeouts(), hardware.DefaultTimeouts()
	wantPlan.Install, wantPlan.RetryBase, wantPlan.PollInterval = 2*time.Hour, 7*time.Second, 3*time.Second
	wantSteps.Boot = 40 * time.Minute
	if got := s.HostTimeouts(); got != wantPlan {
		t.Errorf("host controller: got %+v, want %+v", got, wantPlan)
	}
	if got := s.InstallerTimeouts(); got != wantSteps {
		t.Errorf("installer: got %+v, want %+v", got, wantSteps)
	}
}
