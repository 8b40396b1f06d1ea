package observability

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/metrics/metricstest"
)

func TestKEP3221_ReferenceListsTheNineMetrics(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `(apiserver_auth[a-z_]+)` \\| (\\w+) \\|([^|]*)\\|")
	all := theirs(t)
	listed := map[string]bool{}
	for _, match := range row.FindAllStringSubmatch(read(t, reference+"metrics.md"), -1) {
		name, kind, cell := match[1], match[2], match[3]
		listed[name] = true
		f, ok := all[name]
		if !ok {
			t.Errorf("%s is in docs/reference/metrics.md, but nothing exposes it", name)
			continue
		}
		if kind != strings.ToLower(f.kind.String()) {
			t.Errorf("%s: listed as %s, is a %s", name, kind, f.kind)
		}
		for label := range f.labels {
			if !strings.Contains(cell, "`"+label+"`") {
				t.Errorf("%s: label %s is not listed", name, label)
			}
		}
		if n := strings.Count(cell, "`") / 2; n != len(f.labels) {
			t.Errorf("%s: %d labels are listed, it has %d", name, n, len(f.labels))
		}
	}
	for _, name := range append(metricstest.LibraryNames(), metricstest.Provider) {
		if !listed[name] {
			t.Errorf("%s is not in docs/reference/metrics.md", name)
		}
	}
}

func TestKEP3221_DashboardShowsTheNineMetrics(t *testing.T) {
	shown := ""
	for _, p := range dashboard(t).Panels {
		for _, q := range p.Targets {
			shown += q.Expr + "\n"
		}
	}
	for _, name := range metricstest.KEP3221() {
		if !regexp.MustCompile(name + `(_bucket|_sum|_count)?\{[^}]*job="fieldperm"`).MatchString(shown) {
			t.Errorf("%s of fieldperm is on no panel", name)
		}
	}
}

// kube-apiserver has the same metrics. Whatever is about fieldperm's own chain, or about kube-apiserver's
// question to fieldperm, says so.
func TestKEP3221_RulesNameTheServerOfTheChain(t *testing.T) {
	named := regexp.MustCompile(`(apiserver_auth\w+)\{([^}]*)\}`)
	for name, rule := range alerts(t) {
		for _, match := range named.FindAllStringSubmatch(rule.Expr, -1) {
			if slices.Contains(metricstest.LibraryNames(), match[1]) && !strings.Contains(match[2], `job="fieldperm"`) && !strings.Contains(match[2], `job!="fieldperm"`) {
				t.Errorf("%s: %s of fieldperm and of kube-apiserver look the same: add job", name, match[1])
			}
		}
	}
}
