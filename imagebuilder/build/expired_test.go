package build_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/imagebuilder/build"
	"github.com/ingot-dev/ingot/imagebuilder/recipe"
	"github.com/ingot-dev/ingot/test/require"
)

// expiredRepository serves a signed repository without packages whose list was valid for the first week of 2024.
func expiredRepository(t *testing.T) recipe.Repository {
	t.Helper()
	require.Tool(t, "gpg", "apt-get install gpg")
	dir := t.TempDir()
	run := func(stdin string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "gpg", append([]string{"--batch", "--quiet", "--homedir", dir, "--passphrase", "", "--pinentry-mode", "loopback"}, args...)...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("gpg %v: %v", args, err)
		}
		return string(out)
	}
	run("", "--quick-generate-key", "a", "ed25519", "sign", "never")
	t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", dir, "--kill", "gpg-agent").Run() })
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0 main/binary-amd64/Packages"
	list := run(fmt.Sprintf("Origin: Test\nSuite: test\nCodename: test\nArchitectures: amd64\nComponents: main\nDate: Mon, 01 Jan 2024 00:00:00 UTC\nValid-Until: Mon, 08 Jan 2024 00:00:00 UTC\nSHA256:\n %s\n", empty), "--clearsign")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/dists/test/InRelease"):
			fmt.Fprint(w, list)
		case !strings.HasSuffix(r.URL.Path, "/Packages"):
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return recipe.Repository{URL: server.URL, Suite: "test", Components: []string{"main"}, Key: run("", "--armor", "--export")}
}

func TestAListOfPackagesThatHasExpiredFailsTheBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("it downloads packages")
	}
	t.Setenv("no_proxy", "127.0.0.1")
	opts := options(t)
	opts.Recipe.Debian.Repositories = append(opts.Recipe.Debian.Repositories, expiredRepository(t))
	opts.Recipe.Debian.Packages = nil
	build := func(snapshot *time.Time) string {
		t.Helper()
		opts.Recipe.Debian.Repositories[1].Snapshot = snapshot
		_, err := build.Build(t.Context(), opts)
		if images, _ := filepath.Glob(filepath.Join(opts.Output, "*.qcow2")); err == nil || len(images) > 0 {
			t.Fatalf("an image was built: %v", images)
		}
		logs, _ := filepath.Glob(filepath.Join(opts.Output, "*.log"))
		var log []byte
		for _, name := range logs {
			text, _ := os.ReadFile(name)
			log = append(log, text...)
		}
		return err.Error() + string(log)
	}
	if got := build(nil); !strings.Contains(got, "is expired") {
		t.Errorf("without a snapshot: %s", got)
	}
	late := time.Date(2024, 2, 1, 0, 0, 0, 0, time.UTC)
	if got := build(&late); !strings.Contains(got, "expected a list that was valid at 2024-02-01T00:00:00Z") {
		t.Errorf("as that of a snapshot of a later day: %s", got)
	}
}
