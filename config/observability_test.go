package config

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"sigs.k8s.io/yaml"
)

// metricName is how a metric of Ingot's is written where it is made.
var metricName = regexp.MustCompile(`"(ingot_[a-z_]+)"`)

// labelLists are the lists of labels that follow a metric's name.
var labelLists = regexp.MustCompile(`\[\]string\{((?:"[a-z]+"(?:, )?)+)\}`)

// exported are Ingot's metrics by name, with their labels, as the sources make them.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, root := range []string{"../controllers", "../cmd/ingot-manager"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), "prometheus.New") {
				return err
			}
			for _, at := range metricName.FindAllStringSubmatchIndex(string(text), -1) {
				labels := labelLists.FindStringSubmatch(string(text[at[1]:]))
				if labels == nil {
					t.Fatalf("%s: no list of labels follows %s", path, text[at[2]:at[3]])
				}
				out[string(text[at[2]:at[3]])] = strings.Split(strings.ReplaceAll(labels[1], `"`, ""), ", ")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(out) < 8 {
		t.Fatalf("only %v were found in the sources", out)
	}
	return out
}

// checkExpression fails when the expression does not parse, or reads a metric or a label that does not exist.
func checkExpression(t *testing.T, where, expression string, metrics map[string][]string) {
	t.Helper()
	parsed, err := metricsql.Parse(expression)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	seen := false
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		selector, ok := e.(*metricsql.MetricExpr)
		if !ok {
			return
		}
		for _, filters := range selector.LabelFilterss {
			var labels []string
			for _, f := range filters {
				if f.Label != "__name__" {
					if !slices.Contains(labels, f.Label) {
						t.Errorf("%s: no label %s in %v", where, f.Label, labels)
					}
					continue
				}
				name := f.Value
				for _, suffix := range []string{"_bucket", "_count", "_sum"} {
					name = strings.TrimSuffix(name, suffix)
				}
				labels, seen = metrics[name], true
				if labels == nil {
					t.Errorf("%s: no metric %s is made anywhere", where, f.Value)
				}
			}
		}
	})
	if !seen {
		t.Errorf("%s: %q reads no metric", where, expression)
	}
}

// rule of an alert.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func TestAlertsReadMetricsThatExistAndSayWhatToDo(t *testing.T) {
	text, err := os.ReadFile("prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       struct {
			Groups []struct {
				Name  string `json:"name"`
				Rules []rule `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Fatal(err)
	}
	if object.APIVersion != "monitoring.coreos.com/v1" || object.Kind != "PrometheusRule" {
		t.Errorf("%s %s is not what the Prometheus operator reads", object.APIVersion, object.Kind)
	}
	metrics, names := exported(t), []string{}
	metrics["leader_election_master_status"] = []string{"name"} // controller-runtime's; the end-to-end test of the manager reads it
	for _, g := range object.Spec.Groups {
		for _, r := range g.Rules {
			names = append(names, r.Alert)
			checkExpression(t, r.Alert, r.Expr, metrics)
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s: an alert has a severity, a summary, and a description of what to do", r.Alert)
			}
		}
	}
	for _, want := range []string{"IngotPhaseOverdue", "IngotRolloutStopped", "IngotGateMissed", "IngotHostsInError", "IngotNoLeader", "IngotAbsent"} {
		if !slices.Contains(names, want) {
			t.Errorf("no alert %s", want)
		}
	}
}

func TestTheDashboardReadsMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile("grafana/ingot.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title  string `json:"title"`
		Panels []struct {
			ID      int            `json:"id"`
			Title   string         `json:"title"`
			GridPos map[string]int `json:"gridPos"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	metrics, ids := exported(t), map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.GridPos["w"] == 0 || p.GridPos["x"]+p.GridPos["w"] > 24 || len(p.Targets) == 0 {
			t.Errorf("panel %q: its id is taken, its place is off the grid, or it shows nothing", p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			checkExpression(t, p.Title, target.Expr, metrics)
		}
	}
	if dashboard.Title == "" || len(ids) == 0 {
		t.Error("the dashboard is empty")
	}
}
