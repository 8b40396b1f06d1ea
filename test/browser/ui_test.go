package browser

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/fieldperm/fieldperm/internal/ui"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// serve serves the page as fieldperm-webhook does, to an authenticated caller.
func serve(t *testing.T) string {
	t.Helper()
	kinds, err := load.BuiltIn()
	must(t, err)
	catalogue, err := load.Catalogue(false)
	must(t, err)
	files, errs := load.Files([]string{"testdata/documents.yaml"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	documents := compile.Documents{Topologies: []compile.Topology{kinds}, Permissions: catalogue}.Append(files)
	page := ui.Handler{Documents: func() *compile.Documents { return &documents }, MaxBytes: ui.DefaultMaxBytes}.HTTP()
	mux := http.NewServeMux()
	mux.HandleFunc(ui.Path, func(w http.ResponseWriter, r *http.Request) {
		page.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "carol"})))
	})
	mux.HandleFunc("/frame", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<table></table><iframe src="` + ui.Path + `"></iframe>`))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestUI_IsThePageOfAllKinds(t *testing.T) {
	p := openAt(t, serve(t)+ui.Path)
	p.visit("#kind=apps/v1/Deployment&path=.spec.replicas")
	p.contains(selected, ".replicas", "granular:scale")
	p.press("/")
	p.do(`document.getElementById("search").select()`)
	p.press("widget")
	p.run(chromedp.Click("#results button"))
	p.expect(fragment, "#kind=example.com/v1/Widget")
	p.visit("#kind=example.com/v1/Widget&path=.spec.size")
	p.contains(selected, "■ barrier under conditions")
	p.contains(details, "when the conditions of the set are true", "UncoveredPermissionSet ")
	p.accessible("tree Widget", "treeitem .size", "searchbox Search", "navigation Kinds and subjects")
	p.picture("ui")
}

// Another site cannot show the page in a frame.
func TestUI_IsInNoFrame(t *testing.T) {
	p := openAt(t, serve(t)+"/frame")
	p.do(`true`)
	p.expect(`(() => { try { return !!document.querySelector("iframe").contentDocument.getElementById("tree"); } catch { return false; } })()`, "false")
	p.mu.Lock()
	defer p.mu.Unlock()
	refused := len(p.problems) > 0
	p.problems = nil // The browser logs the refusal.
	if !refused {
		t.Error("the browser did not refuse the frame")
	}
}
