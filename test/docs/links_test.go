package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the checkout.
const root = "../.."

// pages returns every Markdown file for readers, relative to root.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "test/*.md", "testdata/*.md", "schema/catalog/*.md", "examples/*/*.md", "config/roles/*/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			relative, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, filepath.ToSlash(relative))
		}
	}
	if len(out) < 10 {
		t.Fatalf("there are %d pages only: %v", len(out), out)
	}
	return out
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	span    = regexp.MustCompile("`[^`\n]+`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// anchors returns those that GitHub gives the headings of a page.
func anchors(text string) []string {
	var out []string
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		out = append(out, strings.Map(func(c rune) rune {
			switch {
			case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
				return c
			case c == ' ':
				return '-'
			}
			return -1
		}, strings.ToLower(match[1])))
	}
	return out
}

func TestLinks_LeadSomewhere(t *testing.T) {
	known := map[string][]string{}
	headings := func(name string) []string {
		if _, ok := known[name]; !ok {
			known[name] = anchors(page(t, name))
		}
		return known[name]
	}
	for _, name := range pages(t) {
		text := span.ReplaceAllString(fence.ReplaceAllString(page(t, name), ""), "")
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target := match[1]
			if strings.Contains(target, "://") {
				continue
			}
			path, anchor, _ := strings.Cut(target, "#")
			to := name
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil || strings.HasPrefix(to, "..") {
				t.Errorf("%s: link %q leads to no file of the repository", name, target)
				continue
			}
			if anchor != "" && !slices.Contains(headings(to), anchor) {
				t.Errorf("%s: link %q: %s has no such heading", name, target, to)
			}
		}
	}
}

// A reader finds every page within two clicks of the README.
func TestPages_AreTwoClicksFromTheReadme(t *testing.T) {
	clicks := map[string]int{"README.md": 0}
	next := []string{"README.md"}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, match := range link.FindAllStringSubmatch(span.ReplaceAllString(page(t, name), ""), -1) {
			target, _, _ := strings.Cut(match[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			target = filepath.ToSlash(filepath.Join(filepath.Dir(name), target))
			if _, seen := clicks[target]; !seen {
				clicks[target] = clicks[name] + 1
				next = append(next, target)
			}
		}
	}
	for _, name := range pages(t) {
		if !strings.HasPrefix(name, "docs/") {
			continue
		}
		if n, ok := clicks[name]; !ok || n > 2 {
			t.Errorf("%s: is not reached by two clicks from README.md: link it from docs/README.md", name)
		}
	}
}
