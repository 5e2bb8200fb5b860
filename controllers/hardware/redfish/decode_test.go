package redfish

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/api/input"
)

func TestAMistypedMemberCostsOnlyItself(t *testing.T) {
	var got struct {
		Name          string
		Capacity      number `json:"CapacityBytes"`
		Location      struct{ Info string }
		Identifiers   []struct{ DurableName string }
		Devices       []struct{ Size number }
		Raw           json.RawMessage
		Link          schemas.Link
		Drives        schemas.Links
		MemorySummary struct{ Total, Other number }
		Last          string
	}
	failed, err := decodeMembers([]byte(`{"Name": 7, "CapacityBytes": 3.84e12, "Location": [], "Identifiers": [null, {"DurableName": null}, {"DurableName": "a"}],
		"Devices": [{"Size": {}}, {"Size": "5000"}], "Raw": [1], "Link": {"@odata.id": "/a"}, "Drives": [{"@odata.id": "/b"}], "MemorySummary": {"Total": "much", "Other": 2},
		"Unknown": {}, "Last": "set"}`), &got)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range failed {
		paths = append(paths, f.path)
	}
	if want := `["Name","Location","Devices[0].Size","MemorySummary.Total"]`; string(mustJSON(t, paths)) != want {
		t.Errorf("failed %s, expected %s", mustJSON(t, paths), want)
	}
	if got.Capacity != 3.84e12 || len(got.Identifiers) != 3 || got.Identifiers[2].DurableName != "a" || got.Devices[1].Size != 5000 || got.Link != "/a" ||
		len(got.Drives) != 1 || got.MemorySummary.Other != 2 || got.Last != "set" || string(got.Raw) != "[1]" {
		t.Errorf("%+v", got)
	}
	for _, text := range []string{"", "null", "[]", "7", "{", `{"Name": "a"} {}`} {
		if _, err := decodeMembers([]byte(text), &got); err == nil {
			t.Errorf("%q is no resource, and was decoded", text)
		}
	}
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAnAnswerThatIsTooLargeIsAnErrorAndALongListIsLeftOut(t *testing.T) {
	for name, text := range map[string]string{
		"bytes": `"` + strings.Repeat("x", 9<<20) + `"`, "elements": "[" + strings.Repeat("0,", 4_000_000) + "0]", "levels": strings.Repeat("[", 100),
	} {
		_, err := readAnswer(&http.Response{Body: io.NopCloser(strings.NewReader(text))})
		if large := (*input.Error)(nil); !errors.Is(err, errTooLarge) || !errors.As(err, &large) || large.Unit != name {
			t.Errorf("too many %s: %v", name, err)
		}
	}
	var got struct{ Members []struct{ Name string } }
	failed, err := decodeMembers([]byte(`{"Members": [`+strings.Repeat("{},", maxListItems)+`{}]}`), &got)
	if err != nil || len(failed) != 1 || failed[0].path != "Members" || len(got.Members) > 0 {
		t.Errorf("%d members, failed %v, %v", len(got.Members), failed, err)
	}
}
