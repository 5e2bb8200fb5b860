package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// FuzzDecode: what is decoded of an answer or a request is what its JSON says, once more when it is written and read again; and an error quotes nothing of it.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"attempt":3,"operation":"Install","image":{"url":"https://images.example.com/a","checksum":"sha256:00","format":"raw"},"progressMillis":5000,"remainingMillis":60000}`))
	f.Add([]byte(`{"rootDisk":0,"note":"s3cr3t"}`))
	f.Add([]byte(`{"userData":"czNjcjN0"} {}`))
	f.Add([]byte(`{"code":"NotYet","message":"x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, into := range []any{&Instructions{}, &DiskDecision{}, &ConfigDrive{}, &LogReceipt{}, &Refusal{}, &Progress{}, &Result{}, &LogChunk{}, &Disks{}} {
			err := Decode(bytes.NewReader(body), 1<<12, into)
			if err != nil {
				if text := err.Error(); len(text) > 300 || strings.Contains(text, "s3cr3t") {
					t.Errorf("%T: the error is %q", into, text)
				}
				continue
			}
			if len(body) > 1<<12 || !json.Valid(body) {
				t.Errorf("%T: %q passed", into, body)
			}
			text, err := json.Marshal(into)
			if err != nil {
				t.Fatal(err)
			}
			again := reflect.New(reflect.TypeOf(into).Elem()).Interface()
			if err := Decode(bytes.NewReader(text), MaxReply, again); err != nil {
				t.Errorf("%T: %s cannot be read again: %v", into, text, err)
				continue
			}
			if second, err := json.Marshal(again); err != nil || !bytes.Equal(text, second) {
				t.Errorf("%T: %s, and again %s, %v", into, text, second, err)
			}
		}
	})
}
