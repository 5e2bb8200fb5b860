package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// message is a MIME message of parts, each its header's lines and, behind an empty one, its text.
func message(parts ...string) string {
	var out strings.Builder
	out.WriteString("Content-Type: multipart/mixed; boundary=\"b\"\nMIME-Version: 1.0\n\n")
	for _, part := range parts {
		out.WriteString("--b\n" + part + "\n")
	}
	out.WriteString("--b--\n")
	return out.String()
}

func config(text string) string { return "Content-Type: text/cloud-config\n\n#cloud-config\n" + text }

func script(name, text string) string {
	return fmt.Sprintf("Content-Type: text/x-shellscript\nContent-Disposition: attachment; filename=%q\n\n%s", name, text)
}

func zipped(text string) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write([]byte(text)) // into memory
	_ = w.Close()
	return out.Bytes()
}

func TestAMessageIsTheSameAsItsParts(t *testing.T) {
	const text = "hostname: one\nruncmd:\n- a\n"
	encoded := base64.StdEncoding.EncodeToString([]byte("#cloud-config\n" + text))
	for sentence, data := range map[string]string{
		"plain":                  "#cloud-config\n" + text,
		"compressed":             string(zipped("#cloud-config\n" + text)),
		"a part":                 message(config(text)),
		"a compressed message":   string(zipped(message(config(text)))),
		"a part in base64":       message("Content-Type: text/cloud-config\nContent-Transfer-Encoding: base64\n\n" + encoded[:20] + "\n" + encoded[20:]),
		"a part quoted":          message("Content-Type: text/cloud-config\nContent-Transfer-Encoding: quoted-printable\n\n#cloud-config\nhostname: on=\ne\nruncmd:\n- =61\n"),
		"a compressed part":      message("Content-Type: application/gzip\nContent-Transfer-Encoding: base64\n\n" + base64.StdEncoding.EncodeToString(zipped("#cloud-config\n"+text))),
		"a part of unknown type": message("Content-Type: text/plain\n\n#cloud-config\n" + text),
		"a part without a type":  message("MIME-Version: 1.0\n\n#cloud-config\n" + text),
		"a script that is none":  message("Content-Type: text/x-shellscript\n\n#cloud-config\n" + text),
		"a message in a message": message("Content-Type: multipart/mixed; boundary=\"c\"\n\n--c\n" + config(text) + "\n--c--"),
		"an empty part":          message("Content-Type: text/plain\n\n", config(text)),
	} {
		got, err := Parse([]byte(data))
		if err != nil || got.Hostname != "one" || len(got.RunCmd) != 1 || got.RunCmd[0] != "a" || len(got.Scripts) > 0 {
			t.Errorf("%s: %+v, %v", sentence, got, err)
		}
	}
}

func TestCloudConfigsBecomeOneAsTheyAsk(t *testing.T) {
	const first = "hostname: one\nruncmd: [a, b]\nssh_authorized_keys: [k]\n"
	for sentence, test := range map[string]struct{ header, how, hostname, runcmd, keys string }{
		"the later key counts":           {"", "", "two", "c", "k"},
		"the earlier key counts":         {"", "merge_how: dict()+list()+str()\n", "one", "a b", "k"},
		"lists append":                   {"", "merge_how: dict(recurse_list)+list(append)\n", "one", "a b c", "k"},
		"lists prepend":                  {"", "merge_type: dict(recurse_array)+list(prepend)\n", "one", "c a b", "k"},
		"lists are replaced by place":    {"", "merge_how: dict(recurse_list)+list()\n", "one", "c b", "k"},
		"lists stay":                     {"", "merge_how: dict(recurse_list)+list(no_replace)\n", "one", "a b", "k"},
		"texts append":                   {"", "merge_how: dict(recurse_str)+str(append)\n", "onetwo", "a b", "k"},
		"texts are replaced":             {"", "merge_how: dict(recurse_str)+str()\n", "two", "a b", "k"},
		"a list of names":                {"", "merge_how:\n- {name: list, settings: [append]}\n- {name: dict, settings: [recurse_list]}\n", "one", "a b c", "k"},
		"the header says it":             {"Merge-Type: dict(recurse_list)+list(append)\n", "", "one", "a b c", "k"},
		"the header's older name":        {"X-Merge-Type: dict(recurse_list)+list(append)\n", "", "one", "a b c", "k"},
		"the content before the header":  {"Merge-Type: list(prepend)\n", "merge_how: dict(recurse_list)+list(append)\n", "one", "a b c", "k"},
		"a null deletes, where it may":   {"", "merge_how: dict(allow_delete,no_replace)\nssh_authorized_keys: null\n", "one", "a b", ""},
		"spelling does not count much":   {"", "merge_how: Dict(recurse_list) + LIST(append)\n", "one", "a b c", "k"},
		"dict(replace) is the other way": {"", "merge_how: dict(replace)+list(append)\n", "two", "c", "k"},
	} {
		second := "Content-Type: text/cloud-config\n" + test.header + "\n#cloud-config\n" + test.how + "hostname: two\nruncmd: [c]\n"
		got, err := Parse([]byte(message(config(first), second)))
		if err != nil {
			t.Errorf("%s: %v", sentence, err)
		}
		if commands := strings.Trim(fmt.Sprint(got.RunCmd), "[]"); got.Hostname != test.hostname || commands != test.runcmd || strings.Join(got.SSHKeys, " ") != test.keys {
			t.Errorf("%s: %s, %s, %v", sentence, got.Hostname, commands, got.SSHKeys)
		}
	}
}

func TestEntriesOfListsBecomeOneWhereAsked(t *testing.T) {
	const first = "write_files: [{path: /a, content: x}]\n"
	const second = "merge_how: dict(recurse_list)+list(recurse_dict)\nwrite_files: [{content: y, permissions: '0600'}]\n"
	got, err := Parse([]byte(message(config(first), config(second))))
	if want := (File{Path: "/a", Content: "x", Permissions: "0600"}); err != nil || len(got.Files) != 1 || got.Files[0] != want {
		t.Errorf("%+v, want %+v: %v", got.Files, want, err)
	}
}

func TestMessagesInMessagesEnd(t *testing.T) {
	text := config("hostname: x\n")
	for i := range maxNested + 1 {
		text = fmt.Sprintf("Content-Type: multipart/mixed; boundary=\"b%d\"\nMIME-Version: 1.0\n\n--b%d\n%s\n--b%d--", i, i, text, i)
		if got, err := Parse([]byte(text)); (err != nil) != (i == maxNested) || (got.Hostname == "x") != (i < maxNested) {
			t.Errorf("%d messages: %+v, %v", i+1, got, err)
		}
	}
}

func TestScriptsKeepTheNamesThatTheyRunBy(t *testing.T) {
	got, err := Parse([]byte(message(script("b", "#!/bin/sh\nb\n"), config("hostname: x\n"), script("../a b", "#!/bin/bash\na\n"), "Content-Type: text/plain\n\n#!/bin/sh\nunnamed\n")))
	var names []string
	for _, s := range got.Scripts {
		names = append(names, s.Name)
	}
	if want := []string{"b", ".._ab", "part-004"}; err != nil || !slices.Equal(names, want) || got.Hostname != "x" || !strings.HasPrefix(got.Scripts[1].Text, "#!/bin/bash\n") {
		t.Errorf("%q, want %q: %v", names, want, err)
	}
	alone, err := Parse([]byte("#!/bin/sh\nx\n"))
	if err != nil || len(alone.Scripts) != 1 || alone.Scripts[0].Name != "part-001" {
		t.Errorf("a script alone: %+v, %v", alone, err)
	}
}

func TestWhatIsNotUnderstoodIsAnErrorAndTheRestIsDone(t *testing.T) {
	for sentence, data := range map[string]string{
		"an include":           message(config("hostname: x\n"), "Content-Type: text/x-include-url\n\nhttps://example.com/secret-token"),
		"an archive":           message(config("hostname: x\n"), "Content-Type: text/plain\n\n#cloud-config-archive\n- secret-token"),
		"a template":           message(config("hostname: x\n"), "Content-Type: text/plain\n\n## template: jinja\n#cloud-config\nsecret-token: 1"),
		"no YAML":              message(config("hostname: x\n"), config("a: [secret-token\n")),
		"a list":               message(config("hostname: x\n"), config("- secret-token\n")),
		"a way to merge":       message(config("hostname: x\n"), config("merge_how: secret-token\n")),
		"a list of no names":   message(config("hostname: x\n"), config("merge_how: [secret-token]\n")),
		"another shape":        message(config("hostname: x\nwrite_files: secret-token\n")),
		"no last boundary":     strings.TrimSuffix(message(config("hostname: x\n"), script("secret-token", "#!/bin/sh\n")), "\n--b--\n"),
		"a type that is none":  message(config("hostname: x\n"), "Content-Type: ;;secret-token\n\n#!/bin/sh\n"),
		"no base64":            message(config("hostname: x\n"), "Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n!secret-token!"),
		"not compressed":       message(config("hostname: x\n"), "Content-Type: application/gzip\n\nsecret-token"),
		"text":                 "secret-token",
		"Ignition":             `{"ignition": {"version": "3.4.0"}, "x": "secret-token"}`,
		"a header that's none": "mime-version: 1.0\nsecret-token\n\n",
	} {
		got, err := Parse([]byte(data))
		if !errors.Is(err, ErrUserData) || strings.Contains(err.Error(), "secret-token") {
			t.Errorf("%s: %v", sentence, err)
		}
		if strings.HasPrefix(sentence, "a list") && got.Hostname != "x" || sentence == "another shape" && got.Hostname != "x" {
			t.Errorf("%s: %+v", sentence, got)
		}
	}
	if got, err := Parse(nil); err != nil || got.Hostname != "" {
		t.Errorf("no user data: %+v, %v", got, err)
	}
}

func TestAFileHasTheModeThatYAMLMadeOfIt(t *testing.T) {
	got, err := Parse([]byte("#cloud-config\nwrite_files:\n- {path: /a, permissions: 0640}\n- {path: /b, permissions: '0600'}\n- {path: /c}\n"))
	if err != nil || len(got.Files) != 3 {
		t.Fatal(got, err)
	}
	for i, want := range []string{"0640", "0600", "0644"} {
		if mode := got.Files[i].Mode(); mode != want {
			t.Errorf("%s has the mode %s, want %s", got.Files[i].Path, mode, want)
		}
	}
	if _, err := (File{Encoding: "rot13"}).Decode(); !errors.Is(err, ErrUserData) {
		t.Errorf("an unknown encoding: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("../../../../cloudinit/testdata/*.user-data.*")
	if err != nil || len(names) == 0 {
		f.Fatal("no documents", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(message(config("merge_how: dict(recurse_list)+list(append)\n"), script("x", "#!/bin/sh\n"))))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Parse(text)
		if err != nil && !errors.Is(err, ErrUserData) {
			t.Error(err)
		}
		for _, file := range got.Files {
			_, _ = file.Decode()
			_ = file.Mode()
		}
		for _, command := range append(got.RunCmd, got.BootCmd...) {
			for _, words := range CommandLines(command) {
				if len(words) == 0 {
					t.Error("a command without a word")
				}
			}
		}
	})
}
