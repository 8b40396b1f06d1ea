package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	shellFence = regexp.MustCompile("(?ms)^ *```(?:bash|console)\n(.*?)^ *```$")
	// tried matches the sentence in which a page says where its commands were tried.
	tried = regexp.MustCompile(`(?i)(where it was|were|was|not|been) tried|tried with|run by (a test|the tests)`)
	// ours are the commands of this repository.
	ours         = regexp.MustCompile(`\b(fieldperm-webhook (?:serve|release|check-config)|fieldperm-gen [a-z]+|kubectl fieldperm (?:conditions|explain|review|tighten))\b([^|>#\n]*)`)
	flagName     = regexp.MustCompile(`(?:^|\s)(--[a-z][a-z-]*)`)
	target       = regexp.MustCompile(`(?m)(?:^|[$&] |^\s*)make ([a-z][a-z-]*)`)
	inRepository = regexp.MustCompile(`(?:^|[\s=])((?:config|charts|test|testdata)/[A-Za-z0-9_./-]+)`)
)

// commands returns the shell examples of a page, one command in one line.
func commands(text string) string {
	var b strings.Builder
	for _, match := range shellFence.FindAllStringSubmatch(text, -1) {
		b.WriteString(strings.ReplaceAll(match[1], "\\\n", " "))
	}
	return b.String()
}

// Tests run the commands of the guides, or the page says where they were tried. Commands for contributors run tests.
func TestCommands_SayWhereTheyWereTried(t *testing.T) {
	seen := 0
	for _, name := range pages(t) {
		text := page(t, name)
		if !strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "docs/contributing/") || strings.HasPrefix(name, "docs/reference/") || commands(text) == "" {
			continue
		}
		seen++
		if !tried.MatchString(text) {
			t.Errorf("%s: has commands and does not say where they were tried: say it, or that no test runs them", name)
		}
	}
	if seen < 10 {
		t.Errorf("%d pages have commands: the test does not see them", seen)
	}
}

// The examples use only flags that a command of this repository has, as the generated reference lists them.
func TestCommands_HaveTheirFlags(t *testing.T) {
	reference := page(t, "docs/reference/flags.md")
	seen := 0
	for _, name := range pages(t) {
		for _, match := range ours.FindAllStringSubmatch(commands(page(t, name)), -1) {
			_, section, found := strings.Cut(reference, "\n## "+match[1]+"\n")
			section, _, _ = strings.Cut(section, "\n## ")
			if !found {
				t.Errorf("%s: docs/reference/flags.md has no section %q", name, match[1])
			}
			for _, given := range flagName.FindAllStringSubmatch(match[2], -1) {
				seen++
				if !regexp.MustCompile("`" + given[1] + "[ `]").MatchString(section) {
					t.Errorf("%s: %s has no flag %s", name, match[1], given[1])
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("%d flags were found: the test does not see them", seen)
	}
}

// Make targets and files of the repository that commands name exist.
func TestCommands_NameTargetsAndFilesThatExist(t *testing.T) {
	makefile := page(t, "Makefile")
	for _, name := range pages(t) {
		text := commands(page(t, name))
		for _, match := range target.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+match[1]+": ") {
				t.Errorf("%s: make %s: there is no such target", name, match[1])
			}
		}
		for _, match := range inRepository.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(match[1]))); err != nil {
				t.Errorf("%s: %s does not exist", name, match[1])
			}
		}
	}
}
