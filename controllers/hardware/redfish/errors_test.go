package redfish

import (
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 10, 21, 7, 0, 0, 0, time.UTC)
	argument := []message{{ID: "Base.1.12.ServiceTemporarilyUnavailable", Args: looseArg{"20"}}, {ID: "IDRAC.2.8.SYS518"}}
	for name, c := range map[string]struct {
		refused refusal
		want    time.Duration
	}{
		"seconds":                   {refusal{status: 503, retryAfter: "30"}, 30 * time.Second},
		"a date":                    {refusal{status: 503, retryAfter: "Wed, 21 Oct 2026 07:01:00 GMT"}, time.Minute},
		"nonsense":                  {refusal{status: 503, retryAfter: "-1\nx"}, 0},
		"hours are cut":             {refusal{status: 503, retryAfter: "7200"}, maxHold},
		"a far date is cut":         {refusal{status: 503, retryAfter: "Wed, 21 Oct 2027 07:01:00 GMT"}, maxHold},
		"iDRAC's argument":          {refusal{status: 503, messages: argument}, 20 * time.Second},
		"the header goes first":     {refusal{status: 503, retryAfter: "5", messages: argument}, 5 * time.Second},
		"an account that is locked": {refusal{status: 401, messages: []message{{Text: "The account has been locked."}}}, lockoutPause},
		"not at a redirect":         {refusal{status: 301, retryAfter: "30"}, 0},
	} {
		got := retryTime(&c.refused, now)
		if c.want == 0 && !got.IsZero() || c.want != 0 && !got.Equal(now.Add(c.want)) {
			t.Errorf("%s: got %s, want %s from now", name, got, c.want)
		}
	}
}

func TestETagsAreSentInEveryForm(t *testing.T) {
	for name, c := range map[string]struct {
		etags []string
		tried string
		want  []string
	}{
		"weak":            {[]string{`W/"a1"`}, `W/"a1"`, []string{`"a1"`, "a1", "", "*"}},
		"compressed":      {[]string{`"a1-gzip"`}, `"a1-gzip"`, []string{`"a1"`, "a1", "", "*"}},
		"bare":            {[]string{"a1"}, "a1", []string{`"a1"`, "", "*"}},
		"stale":           {[]string{`"a2"`}, `"a1"`, []string{`"a2"`, "a2", "", "*"}},
		"none":            {nil, "", []string{"*"}},
		"header and body": {[]string{`"b"`, `"h"`}, `"b"`, []string{`"h"`, "b", "h", "", "*"}},
		"an empty opaque": {[]string{`""`}, `""`, []string{"", "*"}},
	} {
		if got := etagForms(c.etags, c.tried); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestAPanicInTheParserIsAnInvalidAnswer(t *testing.T) {
	endpoint := hardware.Endpoint{Address: "https://10.0.0.7", Password: "hidden"}
	err := recoverPanic(func() error { panic("index out of range in hidden") })
	typed := classifyError("read power state", endpoint, err, nil, "", time.Time{})
	if hardware.KindOf(typed) != hardware.Invalid {
		t.Errorf("got %v, expected Invalid", typed)
	}
	if want := "read power state on https://10.0.0.7: Invalid: the BMC's answer makes no sense: index out of range in ***"; typed.Error() != want {
		t.Errorf("got %q, expected %q", typed, want)
	}
}
