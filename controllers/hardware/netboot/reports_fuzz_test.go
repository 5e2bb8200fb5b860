package netboot

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// FuzzReports: whatever an agent sends after its registration, nothing is stored that cannot be shown or is without end, and only a result ends the attempt.
func FuzzReports(f *testing.F) {
	f.Add(uint8(0), `{"disks":[{"name":"/dev/sda","sizeBytes":1000}],"unusable":[{"name":"x"}]}`)
	f.Add(uint8(1), `{"step":"Writing","doneBytes":5,"totalBytes":10}`)
	f.Add(uint8(2), `{"reason":"WriteFailed","message":"\u001b[31m\u202e","evidence":[{"disk":{"name":"a"},"method":"Overwrite","bytes":-1,"result":"Erased"}]}`)
	f.Add(uint8(2), `{"rootDisk":{"name":"/dev/sda","serialNumber":"s"}}`)
	f.Add(uint8(3), `{"offset":0,"oldest":0,"text":"a line\n"}`)
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		if len(body) > 1<<14 {
			return
		}
		s := newSite(t)
		token := s.bootAgent()
		path := []string{protocol.PathDisks, protocol.PathProgress, protocol.PathResult, protocol.PathLog}[which%4]
		code := s.call("POST", path, token, body)
		stored := *s.host()
		text, err := json.Marshal(stored)
		if err != nil || len(text) > 64<<10+2*len(body) || strings.ContainsFunc(string(text), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%d bytes are stored of %d, %v: %q", len(text), len(body), err, text)
		}
		if stored.DoneBytes < 0 || stored.TotalBytes < 0 || len(stored.Message) > 4*protocol.MaxMessage {
			t.Errorf("%+v", stored)
		}
		if path != protocol.PathResult && path != protocol.PathDisks && stored.State != hardware.AttemptRunning {
			t.Errorf("%s %q ends the attempt: %s %s", path, body, code, stored.State)
		}
		for line := range strings.Lines(s.log.String()) {
			if len(line) > 16<<10 || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("the log: %q", line)
			}
		}
	})
}
