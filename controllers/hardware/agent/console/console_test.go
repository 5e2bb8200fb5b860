package console

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func page() Page {
	return Page{
		Title: "this server has no network", Host: "metal/gpu-1", Attempt: 7, Reason: "BootNICMissing",
		Seen: "expected an interface with the MAC address 0c:42:a1:00:00:01, seen: " + strings.Repeat("eth0 0c:42:a1:00:00:02 mlx5_core no link; ", 9),
		Look: "look whether spec.bootMACAddress of the host is an address of this server, and whether the ramdisk has the module of its card", BootService: "http://10.20.0.2:8090",
		NICs: slices.Repeat([]string{"eth0 0c:42:a1:00:00:02 mlx5_core no link"}, 12), Next: "It goes on when that is there.", Log: slices.Repeat([]string{"level=INFO msg=\x1b[2Jx\xff"}, 30),
	}
}

func TestAPageFitsTheSmallestTerminalAndSaysWhatMatters(t *testing.T) {
	lines := page().Lines()
	text := strings.Join(lines, "\n")
	if len(lines) >= rows || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }) {
		t.Errorf("%d lines:\n%s", len(lines), text)
	}
	for _, line := range lines {
		if len(line) > columns {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for _, want := range []string{"metal/gpu-1, attempt 7", "BootNICMissing", "0c:42:a1:00:00:01", "spec.bootMACAddress", "http://10.20.0.2:8090", "and 7 more", "It goes on"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	if lines := (Page{Title: "x"}).Lines(); len(lines) != 4 {
		t.Errorf("%q", lines)
	}
}

func TestWhileAPageIsShownNoLogScrollsIt(t *testing.T) {
	var log, consoles bytes.Buffer
	var quiet []bool
	s := &Screen{Log: &log, WriteConsoles: func(text string) { consoles.WriteString(text) }, QuietKernel: func(isQuiet bool) { quiet = append(quiet, isQuiet) }}
	s.AddSecret("TOKEN")
	s.AddSecret("")
	s.Hide()
	fmt.Fprintln(s, "one")
	s.Show(Page{Title: "trouble with TOKEN"})
	fmt.Fprintln(s, "two")
	s.Show(Page{Title: "more trouble"})
	s.Hide()
	fmt.Fprintln(s, "three")
	if log.String() != "one\nthree\n" || !slices.Equal(quiet, []bool{true, false}) {
		t.Errorf("log %q, kernel %v", log.String(), quiet)
	}
	if got := consoles.String(); strings.Contains(got, "TOKEN") || !strings.Contains(got, "trouble with [secret]") || !strings.HasSuffix(got, clear) || strings.Count(got, clear) != 3 {
		t.Errorf("%q", got)
	}
}

func TestAPageIsWrittenToEachConsoleThatCanBeWritten(t *testing.T) {
	for text, want := range map[string][]string{
		"tty0                 -WU (EC  p  )    4:1\nttyS0                -W- (E   p a)    4:64\nnetcon0 ---\nhvc0 RW- (E) 229:0\n": {"/dev/tty0", "/dev/ttyS0", "/dev/hvc0"},
		"":                    {"/dev/console"},
		"../../sda -W- (E)\n": {"/dev/console"},
	} {
		if got := Consoles(fstest.MapFS{"proc/consoles": {Data: []byte(text)}}); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := Consoles(fstest.MapFS{}); !slices.Equal(got, []string{"/dev/console"}) {
		t.Errorf("%q", got)
	}
}

func FuzzPage(f *testing.F) {
	f.Add("title", "ns/host", "Reason", "seen this", "look there", "eth0")
	f.Fuzz(func(t *testing.T, title, host, reason, seen, look, nic string) {
		p := Page{Title: title, Host: host, Attempt: 1, Reason: reason, Seen: seen, Look: look, NICs: []string{nic, nic}, Log: []string{seen}}
		lines := p.Lines()
		if len(lines) >= rows {
			t.Fatal(len(lines))
		}
		for _, line := range lines {
			if len(line) > columns || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("%q", line)
			}
		}
	})
}
