package observability

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ H, W, X, Y int }
	Datasource  struct{ Type, UID string }
	Targets     []struct {
		RefID, Expr string
		Datasource  struct{ Type, UID string }
	}
}

type board struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type, Definition string
			Query                  any
		}
	}
}

func dashboard(t *testing.T) board {
	t.Helper()
	var out board
	if err := json.Unmarshal([]byte(read(t, directory+"/dashboard.json")), &out); err != nil {
		t.Fatal(err)
	}
	if out.UID == "" || len(out.Panels) == 0 {
		t.Fatalf("got %+v", out)
	}
	return out
}

// filled replaces Grafana's variables by values.
func filled(expression string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(expression)
}

func TestDashboard_NamesExposedMetrics(t *testing.T) {
	own := ours(t)
	all := maps.Clone(own)
	maps.Copy(all, theirs(t))
	shown := map[string]bool{}
	for _, p := range dashboard(t).Panels {
		for _, q := range p.Targets {
			if strings.Contains(filled(q.Expr), "$") {
				t.Errorf("%s: %s has a variable that the dashboard has not", p.Title, q.Expr)
			}
			found, used := faults(all, filled(q.Expr))
			for _, fault := range found {
				t.Errorf("%s: %s", p.Title, fault)
			}
			for _, name := range used {
				for _, part := range []string{"", "_bucket", "_sum", "_count"} {
					shown[strings.TrimSuffix(name, part)] = true
				}
			}
		}
	}
	for name := range own {
		if !shown[name] {
			t.Errorf("%s is on no panel", name)
		}
	}
}

func TestDashboard_CanBeProvisioned(t *testing.T) {
	d := dashboard(t)
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name+": "+v.Type)
	}
	if !slices.Equal(variables, []string{"datasource: datasource", "instance: query"}) {
		t.Errorf("variables are %q", variables)
	}
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: id %d is there twice, or is 0", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] > 23 {
					t.Errorf("%s: lies over %q, or out of the grid", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
			t.Errorf("%s: has %d queries of data source %q", p.Title, len(p.Targets), p.Datasource.UID)
		}
		for _, q := range p.Targets {
			if q.Datasource.UID != "${datasource}" || q.RefID == "" {
				t.Errorf("%s: query %q is of data source %q", p.Title, q.RefID, q.Datasource.UID)
			}
		}
	}
}
