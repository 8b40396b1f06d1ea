package review

import (
	"net/http"
	"os"
	"testing"

	"github.com/fieldperm/fieldperm/test/corpus"
)

// BenchmarkReview measures one question in process, with an authorizer that takes no time: a small one, and one about a Pod with
// all fields that an API server sets.
func BenchmarkReview(b *testing.B) {
	recorded := ""
	all, err := corpus.Load(testdata)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range all {
		if s.Name != "use-case-17-container-resources" {
			continue
		}
		step := s.Reviewed()[0]
		request, err := s.Request(step)
		if err != nil {
			b.Fatal(err)
		}
		raw, err := corpus.EncodeReview(request)
		if err != nil {
			b.Fatal(err)
		}
		recorded = string(raw)
	}
	if recorded == "" {
		b.Fatal(os.ErrNotExist)
	}
	for name, body := range map[string]string{"Small": question(scale), "Recorded": recorded} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b)
			f.grants.verbs["sarah"] = []string{"update"}
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				f.grants.asked = f.grants.asked[:0]
				if w := f.post(named("sarah"), body); w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}

// BenchmarkPermissions measures the complete catalogue: from the cache, and made for another schema.
func BenchmarkPermissions(b *testing.B) {
	f := newFixture(b)
	b.Run("New", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.get(named("carol"), http.MethodGet, "")
		}
	})
	b.Run("Selected", func(b *testing.B) {
		handler := f.PermissionsHandler()
		b.ReportAllocs()
		for b.Loop() {
			f.ask(handler, named("carol"), http.MethodGet, "?kind=Pod")
		}
	})
}
