package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
)

var shots = flag.String("shots", "", "directory for pictures of the page")

// tab is the page in a browser.
type tab struct {
	t       *testing.T
	ctx     context.Context
	address string

	mu       sync.Mutex
	problems []string
}

// open opens the page of a forest. The test fails if the page has logged an error by its end.
func open(t *testing.T, f *fieldtree.Forest) *tab {
	t.Helper()
	content, err := page.Render("Verbs of fields", page.Notes{Lacks: []string{"This page lacks <i>nothing</i>."}}, f)
	must(t, err)
	return openFile(t, content)
}

// openFile opens a page from a file, as one that was passed on.
func openFile(t *testing.T, content []byte) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	must(t, os.WriteFile(file, content, 0o600))
	return openAt(t, "file://"+file)
}

// openAt opens the page at an address.
func openAt(t *testing.T, address string, flags ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	binary := os.Getenv("CHROMIUM")
	if binary == "" {
		t.Skip("$CHROMIUM names no browser: set it to the path of Chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(binary), chromedp.NoSandbox, chromedp.DisableGPU)
	allocator, stop := chromedp.NewExecAllocator(t.Context(), append(options, flags...)...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	// The first call starts the browser, which lives as long as the context of that call.
	p := &tab{t: t, address: address}
	must(t, chromedp.Listen(ctx, p.listen))
	_, err := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{})
	must(t, err)
	ctx, end := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(end)
	p.ctx = ctx
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, problem := range p.problems {
			t.Errorf("console: %s", problem)
		}
	})
	p.run(chromedp.EmulateViewport(1300, 900))
	p.visit("")
	return p
}

// listen collects errors: of scripts, and of the policy of the page.
func (p *tab) listen(event any) {
	problem := ""
	switch e := event.(type) {
	case *cdpruntime.EventExceptionThrown:
		problem = fmt.Sprintf("%+v", e.ExceptionDetails)
	case *cdpruntime.EventConsoleAPICalled:
		problem = fmt.Sprint("call of console.", e.Type)
	case *cdplog.EventEntryAdded:
		problem = e.Entry.Text
	}
	if problem != "" {
		p.mu.Lock()
		p.problems = append(p.problems, problem)
		p.mu.Unlock()
	}
}

func (p *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	must(p.t, chromedp.Do(p.ctx, actions...))
}

// visit opens the page with a fragment, as a shared link does.
func (p *tab) visit(fragment string) {
	p.t.Helper()
	p.run(chromedp.Navigate("about:blank"), chromedp.Navigate(p.address+fragment), chromedp.WaitReady("#tree > li, table"))
}

// text returns what a script yields, as text.
func (p *tab) text(script string) string {
	p.t.Helper()
	out, err := chromedp.Run(p.ctx, chromedp.Evaluate[any](script))
	must(p.t, err)
	return fmt.Sprint(out)
}

// wait is for what a page does after an event.
const wait = 200 * time.Millisecond

// do runs a script.
func (p *tab) do(script string) {
	p.t.Helper()
	p.text(script + "; true")
	time.Sleep(wait)
}

// prefers sets the colours that the user prefers.
func (p *tab) prefers(scheme string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	must(p.t, err)
}

func (p *tab) expect(script, want string) {
	p.t.Helper()
	if got := p.text(script); got != want {
		p.t.Errorf("%s: %q, want %q", script, got, want)
	}
}

func (p *tab) contains(script string, wanted ...string) {
	p.t.Helper()
	got := p.text(script)
	for _, want := range wanted {
		if !strings.Contains(got, want) {
			p.t.Errorf("%s: %q lacks %q", script, got, want)
		}
	}
}

// press sends a key to the focused element.
func (p *tab) press(keys string) {
	p.t.Helper()
	p.run(chromedp.KeyEvent(keys))
}

// picture writes a picture of the page, if pictures are wanted.
func (p *tab) picture(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	must(p.t, err)
	must(p.t, os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o600))
}
