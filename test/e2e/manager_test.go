package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
	"github.com/ingot-dev/ingot/test/require"
)

const (
	systemNamespace = "ingot-system"
	// stopLimit is less than what Kubernetes gives a pod before it is killed.
	stopLimit = 20 * time.Second
	// takeoverLimit is the lease's life, and the waitTimeout that a busy machine asks for.
	takeoverLimit = time.Minute
)

// replica is a process of ingot-manager.
type replica struct {
	settings settings.Settings
	cmd      *exec.Cmd
	out      *output
	ended    chan struct{}
}

// managerProgram is the path of bin/ingot-manager.
func managerProgram(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs("../../bin/ingot-manager")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		require.Missing(t, "bin/ingot-manager", "make build")
	}
	return program
}

// startReplica starts the program, which ends with the test at the latest.
func startReplica(t *testing.T, args ...string) *replica {
	t.Helper()
	r := &replica{cmd: exec.Command(managerProgram(t), args...), out: &output{arrived: make(chan struct{}, 1)}, ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = r.out, r.out
	r.cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.ended)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.ended
		if t.Failed() {
			t.Logf("ingot-manager %d said:\n%s", r.cmd.Process.Pid, r.out)
		}
	})
	return r
}

// exit waits for the end of the process and gives its exit status.
func (r *replica) exit(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-r.ended:
		return r.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		t.Fatalf("ingot-manager still runs after %s", limit)
		return 0
	}
}

// line is one record of the structured log.
type line struct {
	Level, Msg, Err, Error string
}

// log parses what the replica has said: every line must be a record.
func (r *replica) log(t *testing.T) []line {
	t.Helper()
	var lines []line
	for scanner := bufio.NewScanner(strings.NewReader(r.out.String())); scanner.Scan(); {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil || l.Msg == "" {
			t.Errorf("not a record of the structured log: %q", scanner.Text())
		}
		lines = append(lines, l)
	}
	return lines
}

// site is a management cluster with Ingot's CRDs and roles, and nothing else.
type site struct {
	*management.Server
	dir, token, kubeconfig string
}

func newSite(t *testing.T) *site {
	t.Helper()
	managerProgram(t)
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	log.SetLogger(logr.Discard()) // the clients' own; without one they print a stack
	s := &site{dir: t.TempDir()}
	var err error
	if s.Server, err = management.Start(t.Context(), filepath.Join(s.dir, "management")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}})
	s.apply(t, "rbac")
	s.token = s.tokenOf(t, "ingot-manager")
	s.kubeconfig = s.writeKubeconfig(t)
	boot := filepath.Join(s.dir, "boot")
	for _, name := range []string{"vmlinuz", "agent.cpio.zst"} {
		if err := errors.Join(os.MkdirAll(boot, 0o755), os.WriteFile(filepath.Join(boot, name), []byte(name), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// apply applies what is below a path of package config.
func (s *site) apply(t *testing.T, path string) {
	t.Helper()
	objects, err := environment.ReadManifests(config.Files, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := environment.Apply(t.Context(), s.Client, objects); err != nil {
		t.Fatal(err)
	}
}

// tokenOf gets a token of a service account of ingot-system.
func (s *site) tokenOf(t *testing.T, account string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: account}}
	if err := s.Client.SubResource("token").Create(t.Context(), object, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// writeKubeconfig writes what a pod of the Deployment has: the service account's token.
func (s *site) writeKubeconfig(t *testing.T) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["site"] = &clientcmdapi.Cluster{Server: s.Cluster.Endpoint(), CertificateAuthorityData: s.Cluster.CA()}
	c.AuthInfos["manager"] = &clientcmdapi.AuthInfo{Token: s.token}
	c.Contexts["site"] = &clientcmdapi.Context{Cluster: "site", AuthInfo: "manager"}
	c.CurrentContext = "site"
	path := filepath.Join(s.dir, "manager.kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// replica starts a manager with addresses of its own.
func (s *site) replica(t *testing.T, change func(*settings.Settings)) *replica {
	t.Helper()
	c := settings.Default()
	c.Tenants.PrivateNetworks = loopback.Networks()
	for _, address := range []*string{&c.Health.Address, &c.Metrics.Address, &c.Boot.Address, &c.Boot.TLS.Address} {
		var err error
		if *address, err = loopback.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	c.Boot.URL, c.Boot.Files, c.Metrics.Secure = "http://"+c.Boot.Address, filepath.Join(s.dir, "boot"), false
	change(&c)
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r := startReplica(t, "--config", file, "--kubeconfig", s.kubeconfig, "--embed-boot")
	r.settings = c
	return r
}

// get asks for a URL; the status is 0 when nobody answers.
func get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The metrics endpoint makes its own certificate where it is given none.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Timeout: 5 * time.Second, Transport: transport}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// eventually polls: other processes do what is awaited.
func eventually(t *testing.T, limit time.Duration, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

func (r *replica) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, takeoverLimit, "a replica is ready", func() bool {
		status, _ := get(t, "http://"+r.settings.Health.Address+"/readyz", "")
		return status == http.StatusOK
	})
}

func (r *replica) leads() bool { return strings.Contains(r.out.String(), "uccessfully acquired lease") }

// awaitImage makes the sample's OSImage under another name and waits until a manager has taken care of it.
func (s *site) awaitImage(t *testing.T, name, url string) {
	t.Helper()
	objects, err := environment.ReadManifests(config.Files, "samples/osimage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects[0].SetName(name)
	if err := errors.Join(environment.SetField(objects, "OSImage", url, "spec", "url"), environment.Apply(t.Context(), s.Client, objects)); err != nil {
		t.Fatal(err)
	}
	image := &v1alpha1.OSImage{ObjectMeta: metav1.ObjectMeta{Name: name}}
	eventually(t, takeoverLimit, "OSImage "+name+" is Ready", func() bool {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(image), image)
		return err == nil && meta.IsStatusConditionTrue(image.Status.Conditions, v1alpha1.ConditionReady)
	})
}

// images serves an image that is only ever asked for its size.
func images(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(make([]byte, 1<<20)))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/debian.raw.zst"
}

func TestTwoManagersAreOneOperator(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.replica(t, func(c *settings.Settings) { c.Metrics.Secure = true })
	// Two that make the lease in the same instant race for it, and client-go logs the loser's try as an error.
	eventually(t, takeoverLimit, "the first manager leads", first.leads)
	second := s.replica(t, func(*settings.Settings) {})
	for _, r := range []*replica{first, second} {
		r.awaitReady(t)
		if status, _ := get(t, "http://"+r.settings.Health.Address+"/healthz", ""); status != http.StatusOK {
			t.Errorf("/healthz: %d", status)
		}
		// Nobody waits for this server, and the answer says so: the service reads its store in every replica.
		if status, body := get(t, r.settings.Boot.URL+"/boot/52:54:00:00:00:01", ""); !strings.Contains(body, "#!ipxe") {
			t.Errorf("the boot service: %d %q", status, body)
		}
		if status, body := get(t, r.settings.Boot.URL+"/files/initrd", ""); status != http.StatusOK || body != "agent.cpio.zst" {
			t.Errorf("the agent's ramdisk: %d %q", status, body)
		}
		if status, body := get(t, r.settings.Boot.URL+protocol.PathConfigDrive, "no token of ours"); status != http.StatusUnauthorized {
			t.Errorf("user data without a token: %d %q", status, body)
		}
	}
	s.checkMetrics(t, first, second)
	eventually(t, takeoverLimit, "one replica leads", func() bool { return first.leads() || second.leads() })
	if first.leads() && second.leads() {
		t.Fatal("both replicas lead")
	}
	leader, other := first, second
	if second.leads() {
		leader, other = second, first
	}
	url := images(t)
	s.awaitImage(t, "before", url)
	if said := s.warning(t); said != "no Machines in any namespace\n" {
		t.Errorf("while a manager leads, ingot machines warns %q", said)
	}
	s.checkRights(t)

	if err := leader.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	leader.exit(t, stopLimit)
	s.awaitImage(t, "after", url)
	if !other.leads() {
		t.Error("the OSImage got its status from a replica that does not lead")
	}
	other.endsInOrder(t)
	s.checkLogs(t, leader, other)
	s.checkTheft(t)
}

// checkMetrics: plain metrics answer; secure ones refuse whom nobody has bound to the reader's role.
func (s *site) checkMetrics(t *testing.T, secure, plain *replica) {
	t.Helper()
	status, body := get(t, "http://"+plain.settings.Metrics.Address+"/metrics", "")
	if status != http.StatusOK || !strings.Contains(body, "leader_election_master_status") || !strings.Contains(body, `ingot_machines{phase="Ready",state="ready"}`) {
		t.Errorf("plain metrics: %d %.200q", status, body)
	}
	url := "https://" + secure.settings.Metrics.Address + "/metrics"
	for _, name := range []string{"prometheus", "stranger"} {
		s.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name}})
	}
	s.Create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ingot-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: systemNamespace, Name: "prometheus"}},
	})
	for token, want := range map[string]int{"": http.StatusUnauthorized, s.tokenOf(t, "stranger"): http.StatusForbidden, s.tokenOf(t, "prometheus"): http.StatusOK} {
		if status, body := get(t, url, token); status != want || strings.Contains(body, "leader_election_master_status") != (want == http.StatusOK) {
			t.Errorf("secure metrics: %d %.200q, want %d", status, body, want)
		}
	}
}

// checkRights: what a namespace was not given for is named, and the samples' bindings mend it.
func (s *site) checkRights(t *testing.T) {
	t.Helper()
	for _, name := range []string{"metal", "research", "inference"} {
		s.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, name := range []string{"nodeprovider", "nodetype", "tenantcluster"} {
		s.apply(t, "samples/"+name+".yaml")
	}
	tenant := &v1alpha1.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "research"}}
	nodeType := &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: "h100"}}
	s.amend(t, nodeType, func() { nodeType.Spec.OSImageRef.Name = "before" })
	reasonOf := func(o client.Object, conditions *[]metav1.Condition) string {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		ready := cmp.Or(meta.FindStatusCondition(*conditions, v1alpha1.ConditionReady), &metav1.Condition{})
		return ready.Reason
	}
	eventually(t, takeoverLimit, "the missing rights are named", func() bool {
		return reasonOf(tenant, &tenant.Status.Conditions) == v1alpha1.ReasonKubeconfigDenied &&
			reasonOf(nodeType, &nodeType.Status.Conditions) == v1alpha1.ReasonHostNamespaceDenied
	})
	s.apply(t, "samples/00-namespaces.yaml")
	// They look again by themselves after some seconds, and at once when they are changed.
	s.amend(t, nodeType, func() { nodeType.Spec.DisplayName += "." })
	s.amend(t, tenant, func() { tenant.Spec.Join.TLSBootstrap.Endpoint = "https://again.example.com" })
	eventually(t, takeoverLimit, "the samples' bindings are enough", func() bool {
		return reasonOf(tenant, &tenant.Status.Conditions) == v1alpha1.ReasonKubeconfigMissing &&
			reasonOf(nodeType, &nodeType.Status.Conditions) == v1alpha1.ReasonReady
	})
}

// amend changes an object.
func (s *site) amend(t *testing.T, o client.Object, change func()) {
	t.Helper()
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(o.DeepCopyObject().(client.Object))
	change()
	if err := s.Client.Patch(t.Context(), o, patch); err != nil {
		t.Fatal(err)
	}
}

// endsInOrder asks the replica to end, as Kubernetes does.
func (r *replica) endsInOrder(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := r.exit(t, stopLimit); status != 0 {
		t.Errorf("asked to end, it exits with %d", status)
	}
	for _, l := range r.log(t) {
		// controller-runtime gives the lease back as the last act of an orderly end, and at times reports that as lost.
		givenBack := l.Msg == "error received after stop sequence was engaged" && l.Err == "leader election lost"
		if l.Level == "ERROR" && !givenBack {
			t.Errorf("an orderly life has an error in its log: %+v", l)
		}
	}
}

// checkLogs: no credential of the site is in a log.
func (s *site) checkLogs(t *testing.T, replicas ...*replica) {
	t.Helper()
	var key corev1.Secret
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "ingot-boot-key"}, &key); err != nil {
		t.Fatalf("the boot service was asked, so its key is made: %v", err)
	}
	encoded, err := json.Marshal(key.Data["key"])
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range replicas {
		r.log(t)
		for _, secret := range []string{s.token, strings.Trim(string(encoded), `"`), string(key.Data["key"])} {
			if strings.Contains(r.out.String(), secret) {
				t.Error("a credential is in the log")
			}
		}
	}
}

// checkTheft: a manager that has lost its lease does not go on, and says why.
func (s *site) checkTheft(t *testing.T) {
	t.Helper()
	r := s.replica(t, func(*settings.Settings) {})
	eventually(t, takeoverLimit, "a lease that was given back is taken at once", r.leads)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "ingot-manager"}}
	thief, now := "another", metav1.NowMicro()
	// The leader renews meanwhile.
	for err := error(nil); ; {
		if err = s.Client.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err == nil {
			lease.Spec.HolderIdentity, lease.Spec.RenewTime = &thief, &now
			err = s.Client.Update(t.Context(), lease)
		}
		if err == nil {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(context.Cause(t.Context()))
		}
	}
	if status := r.exit(t, takeoverLimit); status != 1 {
		t.Errorf("without its lease, it exits with %d", status)
	}
	lines := r.log(t)
	if last := lines[len(lines)-1]; last.Level != "ERROR" || !strings.Contains(last.Err, "leader election lost") {
		t.Errorf("the last words are %+v", last)
	}
	eventually(t, takeoverLimit, "the command line says that no manager works", func() bool {
		return strings.Contains(s.warning(t), "no ingot-manager works since "+now.UTC().Format("2006-01-02T15:04"))
	})
}

// warning returns what `ingot machines` writes to standard error.
func (s *site) warning(t *testing.T) string {
	t.Helper()
	var stderr bytes.Buffer
	command := exec.Command(filepath.Join(filepath.Dir(managerProgram(t)), "ingot"), "machines", "--kubeconfig", s.KubeconfigFile(t))
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("ingot machines: %v: %s", err, &stderr)
	}
	return stderr.String()
}

func TestAManagerThatCannotStartSaysWhyInOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	head := "apiVersion: config.ingot.dev/v1alpha1\nkind: ManagerConfiguration\nboot: {url: \"http://10.0.0.2:8090\"}\n"
	good, unknown := write("good.yaml", head), write("unknown.yaml", head+"intervall: {}\n")
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	nobody := write("kubeconfig", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a"}}],
		"clusters": [{"name": "a", "cluster": {"server": "https://%s"}}]}`, address))
	for _, c := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"a flag that is not known", []string{"--confg", good}, 2, "-confg; --help shows the flags"},
		{"no configuration", nil, 2, "--config FILE is required"},
		{"an argument", []string{"--config", good, "start"}, 2, `unexpected argument "start"`},
		{"a boot service in the boot service", []string{"--config", good, "--only=boot", "--embed-boot"}, 2, "give one of the two"},
		{"a field that is not known", []string{"--config", unknown}, 1, `unknown.yaml: the configuration is not a ManagerConfiguration`},
		{"no such file", []string{"--config", dir + "/none.yaml"}, 1, "none.yaml: no such file"},
		{"no such kubeconfig", []string{"--config", good, "--kubeconfig", dir + "/none"}, 1, "find the management cluster"},
		{"nobody answers", []string{"--config", good, "--kubeconfig", nobody}, 1, "the management cluster https://" + address + " does not answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := startReplica(t, c.args...)
			if status := r.exit(t, takeoverLimit); status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			lines := strings.Split(strings.TrimSpace(r.out.String()), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, c.says) {
				t.Errorf("said %q, want %q", last, c.says)
			}
			if len(lines) != 1 && c.name != "nobody answers" {
				t.Errorf("said %d lines:\n%s", len(lines), r.out)
			}
		})
	}
}
