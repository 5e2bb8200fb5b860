package ipxe

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

func cpio(name, content string) []byte {
	var out bytes.Buffer
	for _, entry := range [][2]string{{name, content}, {"TRAILER!!!", ""}} {
		fmt.Fprintf(&out, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
			1, 0o100755, 0, 0, 1, 0, len(entry[1]), 0, 0, 0, 0, len(entry[0])+1, 0, entry[0])
		for out.Len()%4 != 0 {
			out.WriteByte(0)
		}
		out.WriteString(entry[1])
		for out.Len()%4 != 0 {
			out.WriteByte(0)
		}
	}
	return out.Bytes()
}

func packed(t *testing.T, content []byte) (gz, zst []byte) {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := writer.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), encoder.EncodeAll(content, nil)
}

func TestAnInitrdIsOpenedAsTheKernelWould(t *testing.T) {
	good := cpio("init", "the agent")
	gz, zst := packed(t, good)
	microcode := append(cpio("kernel/x86/microcode", "code"), make([]byte, 512)...)
	for name, initrd := range map[string][]byte{
		"plain": good, "gzip": gz, "zstd": zst, "behind microcode": append(bytes.Clone(microcode), zst...), "as ./init": cpio("./init", "x"),
	} {
		if err := findInit(bytes.NewReader(initrd)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, initrd := range map[string][]byte{
		"empty": nil, "no archive": []byte("not an archive at all"), "no init": cpio("sbin/init", "x"), "an empty init": cpio("init", ""),
		"cut": good[:112], "almost a magic": append([]byte("0707zz"), make([]byte, 200)...), "an old format": append([]byte("070707"), make([]byte, 200)...), "damaged header": append([]byte("070701"), bytes.Repeat([]byte("z"), 200)...),
	} {
		if err := findInit(bytes.NewReader(initrd)); !errors.Is(err, errNoInit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzInitrd(f *testing.F) {
	f.Add(cpio("init", "x"))
	f.Fuzz(func(t *testing.T, initrd []byte) {
		if err := findInit(bytes.NewReader(initrd)); err != nil && !errors.Is(err, errNoInit) {
			t.Errorf("a kernel knows no such error: %v", err)
		}
	})
}

// run interprets the script on a server that has a kernel, an initrd, and a page that is busy twice.
func run(t *testing.T, script string) (Outcome, []Loaded, error) {
	t.Helper()
	busy := 2
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/boot":
			fmt.Fprint(w, strings.ReplaceAll(script, "BASE", "http://"+r.Host))
		case "/busy":
			if busy--; busy >= 0 {
				w.Header().Set("Retry-After", "5")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			fmt.Fprint(w, "#!ipxe\nexit\n")
		case "/kernel":
			fmt.Fprint(w, "kernel")
		case "/initrd":
			_, _ = w.Write(cpio("init", "x"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer service.Close()
	var loaded []Loaded
	waited := 0
	loader := &Loader{HTTP: service.Client(), OnLoad: func(_ context.Context, l Loaded) error {
		loaded = append(loaded, l)
		return nil
	}, Wait: func(context.Context, time.Duration) error {
		if waited++; waited > 100 {
			return errors.New("waits for ever")
		}
		return nil
	}}
	plan, err := loader.Run(t.Context(), service.URL+"/boot")
	return plan, loaded, err
}

func TestScriptsEndAsTheirCommandsSay(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   End
	}{
		"boot":                {"#!ipxe\nkernel BASE/kernel a=b c || goto again\ninitrd --name initrd BASE/initrd || goto again\nboot || goto again\n:again\nexit\n", Boot},
		"exit with a status":  {"#!ipxe\nexit 1\n", Exit},
		"the end":             {"#!ipxe\necho hello\n", Exit},
		"power off":           {"#!ipxe\necho no\npoweroff ||\n:hold\nsleep 60\ngoto hold\n", PowerOff},
		"a label":             {"#!ipxe\nkernel BASE/missing || goto again\nboot\n:again\nreboot\n", Reboot},
		"and":                 {"#!ipxe\nkernel BASE/missing && poweroff ||\nexit\n", Exit},
		"chain, busy first":   {"#!ipxe\nchain --replace --autofree BASE/busy || poweroff\n", Exit},
		"a chain that is not": {"#!ipxe\nchain BASE/missing || poweroff\n", PowerOff},
	} {
		t.Run(name, func(t *testing.T) {
			plan, _, err := run(t, test.script)
			if err != nil || plan.End != test.want {
				t.Errorf("%+v: %v", plan, err)
			}
		})
	}
	plan, loaded, err := run(t, "#!ipxe\nkernel BASE/kernel initrd=initrd ingot.url=x\ninitrd --name initrd BASE/initrd\nboot\n")
	if err != nil || strings.Join(plan.Arguments, " ") != "initrd=initrd ingot.url=x" || plan.Panic != nil || fmt.Sprint(loaded) != "[script kernel initrd]" {
		t.Errorf("%+v, loaded %v: %v", plan, loaded, err)
	}
}

func TestAScriptThatMakesNoSenseFails(t *testing.T) {
	for name, script := range map[string]string{
		"no script": "<html>", "unknown command": "#!ipxe\nfrobnicate\n", "no label": "#!ipxe\ngoto nowhere\n", "no kernel": "#!ipxe\nboot\n",
		"round and round": "#!ipxe\n:a\ngoto a\n", "waits for ever": "#!ipxe\n:a\nsleep 1\ngoto a\n",
	} {
		if plan, _, err := run(t, script); err == nil {
			t.Errorf("%s: %+v", name, plan)
		}
	}
	plan, _, err := run(t, "#!ipxe\nkernel BASE/kernel\ninitrd BASE/kernel\nboot\n")
	if err != nil || !errors.Is(plan.Panic, errNoInit) {
		t.Errorf("a kernel without an init: %+v, %v", plan, err)
	}
}
