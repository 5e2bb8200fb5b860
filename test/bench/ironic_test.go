package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/test/fleet"
)

func TestCallsOfIronicAreCountedByTheirKindAndNode(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && strings.Contains(r.URL.Path, "locked"):
			w.WriteHeader(http.StatusConflict)
		case r.URL.Path == "/v1/nodes":
			fmt.Fprintf(w, `{"nodes": [{"uuid": "n1", "provision_state": "active"}, {"uuid": "n2", "provision_state": "deploying"}], "next": "http://%s/v1/nodes"}`, r.Host)
		}
	}))
	defer server.Close()
	p, err := newIronicProxy(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	call := func(method, path, body string) string {
		answer := httptest.NewRecorder()
		p.ServeHTTP(answer, httptest.NewRequest(method, "http://proxy.example.com"+path, strings.NewReader(body)))
		text, _ := io.ReadAll(answer.Body)
		return string(text)
	}
	if answer := call("GET", "/v1/nodes?fields=uuid&limit=2", ""); !strings.Contains(answer, "http://proxy.example.com/v1/nodes") || !strings.Contains(answer, "deploying") {
		t.Errorf("the next page is not that of the proxy, or the page has changed: %s", answer)
	}
	call("GET", "/v1/nodes?fields=uuid&limit=2&marker=n2", "")
	call("GET", "/v1/nodes", "")
	call("PATCH", "/v1/nodes/n1", `[{"op": "add", "path": "/instance_info", "value": {"image_source": "a"}}, {"op": "add", "path": "/extra/x", "value": 1}]`)
	call("PUT", "/v1/nodes/n1/states/provision", `{"target": "active", "configdrive": {"user_data": "u"}}`)
	call("PUT", "/v1/nodes/locked/states/provision", `{"target": "active", "configdrive": {"user_data": "v"}}`)
	call("PUT", "/v1/nodes/n1/states/power", `{"target": "power on"}`)
	call("GET", "/v1/ports?address=a", "")
	if p.lists() != 2 || p.count("active") != 1 {
		t.Errorf("%d lists and %d active nodes, expected 2 and 1", p.lists(), p.count("active"))
	}
	deployments := p.lastDeployments()
	if text, _ := json.Marshal(deployments); string(text) != `{"n1":{"InstanceInfo":{"image_source":"a"},"ConfigDrive":{"user_data":"u"}}}` {
		t.Errorf("deployments %s", text)
	}
	calls := p.takeCalls()
	counts := countCalls(calls)
	if got := slices.Sorted(maps.Keys(counts)); !slices.Equal(got, []string{"GET ports", "PATCH node", "PUT power power on", "PUT provision active"}) {
		t.Errorf("kinds %q", got)
	}
	if n := counts["PUT provision active"]; n.count != 2 || n.refused != 1 {
		t.Errorf("counted %+v", n)
	}
	if most := mostOfOneNode(calls); most != 3 {
		t.Errorf("at most %d calls for one node, expected 3", most)
	}
	if wide := slices.IndexFunc(calls, func(c ironicCall) bool { return c.isPage && !c.isNarrow }); wide != 2 || len(p.takeCalls()) != 0 {
		t.Errorf("the page without fields is call %d", wide)
	}
}

func TestTheReportComparesIngotWithTheBareLoop(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	c := &comparison{fleetRun: &fleetRun{options: options{machines: 2}, Fleet: fleet.New(fleet.Options{Dir: t.TempDir()})}}
	var log strings.Builder
	for i, seconds := range []float64{12, 22, 14} {
		from := float64(100 * i)
		for n, request := range []string{"patch machines", "patch baremetalhosts", "patch baremetalhosts"} {
			fmt.Fprintf(&log, `{"stage":"ResponseComplete","verb":%q,"user":{"username":%q},"objectRef":{"resource":%q,"name":"server-%d"},"responseStatus":{"code":200},"requestReceivedTimestamp":%q}`+"\n",
				strings.Fields(request)[0], c.Env.ManagerUser(), strings.Fields(request)[1], n, at(from+1+float64(n)).Format(time.RFC3339Nano))
		}
		ours := ironicDeployment{ordered: at(from), until: at(from + 20), active: []time.Time{at(from + 5), at(from + seconds)}, cpu: map[string]time.Duration{ironicName: time.Second}}
		for _, second := range []float64{1, 2, 6, 11, 16} {
			ours.calls = append(ours.calls, ironicCall{at: at(from + second), kind: "GET nodes", isPage: true, isNarrow: second != 2, isNext: second == 2, code: 200})
		}
		ours.calls = append(ours.calls, ironicCall{at: at(from + 3), took: 40 * time.Millisecond, kind: "PATCH node", node: "a", code: 200},
			ironicCall{at: at(from + 4), took: 60 * time.Millisecond, kind: "PATCH node", node: "a", code: 409}, ironicCall{at: at(from + 5), took: 50 * time.Millisecond, kind: "PATCH node", node: "b", code: 200})
		c.rounds = append(c.rounds, ironicRound{ours, ironicDeployment{ordered: at(from + 50), until: at(from + 60), active: []time.Time{at(from + 60)}}})
	}
	for name, text := range map[string]string{"management": log.String(), tenantName: ""} {
		if err := os.WriteFile(c.Env.AuditLog(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := c.writeReport(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 2 | 20.0 | 22.0 | 10.0 | 2.00 | 2.20 |",
		"| median | 12.0 | 14.0 | 10.0 | 1.20 | 1.40 |",
		"| PATCH node | 0.00 | 1.50 | 0.50 | 50 | 0.00 | 0.00 |  |",
		"To deploy a node: 1.50 calls, at most 2 for one node",
		"Ingot has listed the nodes 12 times in 60 s, after the first ones 0.75 times in 5s, in 15 pages",
		"a limit: 3",
		"| Ingot | claimed | 2.0 | 3.0 | 3.0 |",
		"| Ingot | active | 5.0 | 12.0 | 22.0 |",
		"| Ironic | 1.0 | 0.0 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
}
