package main

import (
	"strings"
	"testing"
)

const events = `{"Time":"2026-11-27T10:00:00Z","Action":"start","Package":"github.com/ingot-dev/ingot/controllers/machine"}
{"Action":"output","Package":"github.com/ingot-dev/ingot/controllers/machine","Test":"TestA","Output":"x\n"}
{"Action":"pass","Package":"github.com/ingot-dev/ingot/controllers/machine","Test":"TestA/one","Elapsed":7}
{"Action":"pass","Package":"github.com/ingot-dev/ingot/controllers/machine","Test":"TestA","Elapsed":8}
{"Action":"skip","Package":"github.com/ingot-dev/ingot/controllers/machine","Test":"TestB","Elapsed":0}
{"Action":"pass","Package":"github.com/ingot-dev/ingot/controllers/machine","Elapsed":20}
{"Action":"fail","Package":"github.com/ingot-dev/ingot/api","Test":"TestC","Elapsed":1}
{"Action":"fail","Package":"github.com/ingot-dev/ingot/api","Elapsed":2}
{"Time":"2026-11-27T10:00:30Z","Action":"skip","Package":"github.com/ingot-dev/ingot/config"}
`

func TestTheReportNamesWhatIsSlow(t *testing.T) {
	var r results
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		budgets string
		want    bool
	}{{"", false}, {"controllers/machine 14", false}, {"# seconds\n\ncontrollers/machine 13", true}, {"* 13", true}, {"* 13\ncontrollers/machine 30\n", false}} {
		limits, err := parseBudgets(c.budgets)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if got := writeReport(&out, &r, limits); got != c.want {
			t.Errorf("budgets %q: too slow is %t", c.budgets, got)
		}
		for _, want := range []string{"    20.0  controllers/machine\n     2.0  api\n", "     8.0  controllers/machine TestA\n     1.0  api TestC\n", "=== SKIP: controllers/machine TestB\n\n=== Failed\n=== FAIL: api TestC\n\nDONE 4 tests, 1 skipped, 1 failures in 30s\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the report lacks %q:\n%s", want, &out)
			}
		}
		if c.want != strings.Contains(out.String(), "controllers/machine took 20 s, and its budget is 13 s") {
			t.Errorf("budgets %q:\n%s", c.budgets, &out)
		}
	}
}

func TestTheSlowestPackagesBeginFirst(t *testing.T) {
	if got := strings.Join(order(map[string]float64{"*": 99, "api": 3, "test/e2e": 40, "config": 3}), " "); got != "./test/e2e ./api ./config" {
		t.Errorf("the order is %s", got)
	}
}

func TestABudgetIsANumberOfSeconds(t *testing.T) {
	for _, wrong := range []string{"controllers/machine", "controllers/machine soon", "a 1\nb 0"} {
		if _, err := parseBudgets(wrong); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
	if err := (&results{}).read(strings.NewReader("no event\n")); err == nil {
		t.Error("what is no event was read")
	}
}
