package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress_AFailureIsNamedAgainAtTheEnd: the last lines have it, the end of its output and the command that runs it again.
func TestProgress_AFailureIsNamedAgainAtTheEnd(t *testing.T) {
	inEmptyCheckout(t)
	var out strings.Builder
	p := newProgress(&out, io.Discard, "make test", times{})
	s := &step{args: []string{"-tags", tag, "-count=1", "-skip=^(TestSlow)$"}}
	for _, line := range []string{
		`{"Action":"start","Package":"github.com/fieldperm/fieldperm/verbs"}`,
		`{"Action":"output","Package":"github.com/fieldperm/fieldperm/verbs","Test":"TestA","Output":"quiet\n"}`,
		`{"Action":"pass","Package":"github.com/fieldperm/fieldperm/verbs","Test":"TestA","Elapsed":0.1}`,
		`{"Action":"pass","Package":"github.com/fieldperm/fieldperm/verbs","Elapsed":0.2}`,
		`{"Action":"start","Package":"github.com/fieldperm/fieldperm/test/e2e"}`,
		`{"Action":"output","Package":"github.com/fieldperm/fieldperm/test/e2e","Test":"TestC2_X/a","Output":"x_test.go:5: wrong\n"}`,
		`{"Action":"output","Package":"github.com/fieldperm/fieldperm/test/e2e","Test":"TestC2_X/a","Output":"--- FAIL: TestC2_X/a (1.00s)\n"}`,
		`{"Action":"fail","Package":"github.com/fieldperm/fieldperm/test/e2e","Test":"TestC2_X/a","Elapsed":1}`,
		`{"Action":"fail","Package":"github.com/fieldperm/fieldperm/test/e2e","Test":"TestC2_X","Elapsed":1}`,
		`{"Action":"fail","Package":"github.com/fieldperm/fieldperm/test/e2e","Elapsed":3}`,
		`{"Action":"output","Package":"github.com/fieldperm/fieldperm/test/load","Test":"TestS","Output":"no address\n"}`,
		`{"Action":"skip","Package":"github.com/fieldperm/fieldperm/test/load","Test":"TestS"}`,
	} {
		p.read(s, []byte(line))
	}
	passed, err := p.finish([]error{nil, nil})
	if passed || err != nil {
		t.Errorf("passed %t, %v", passed, err)
	}
	text := out.String()
	for part, want := range map[string]int{
		"quiet": 0, "x_test.go:5: wrong": 2, "ok   verbs": 1, "no address": 1, "--- FAIL": 1,
		"again: go test -tags integration -count=1 '-run=^TestC2_X$' github.com/fieldperm/fieldperm/test/e2e": 2,
		"FAIL github.com/fieldperm/fieldperm/test/e2e TestC2_X/a\n":                                           1,
	} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("%q occurs %d times, want %d in\n%s", part, got, want, text)
		}
	}
	if !strings.HasSuffix(text, "\n1 passed, 2 failed, 1 skipped\n") {
		t.Errorf("the end is\n%s", text)
	}
}

// TestProgress_APackageThatDoesNotBuildFails: so does one that ends without the failure of a test.
func TestProgress_APackageThatDoesNotBuildFails(t *testing.T) {
	inEmptyCheckout(t)
	var out strings.Builder
	p, s := newProgress(&out, io.Discard, "make test", times{}), &step{}
	for _, line := range []string{
		`{"ImportPath":"github.com/fieldperm/fieldperm/verbs","Action":"build-output","Output":"verbs.go:3:1: syntax error\n"}`,
		`{"ImportPath":"github.com/fieldperm/fieldperm/verbs","Action":"build-fail"}`,
		`{"Action":"fail","Package":"github.com/fieldperm/fieldperm/verbs","Elapsed":0,"FailedBuild":"github.com/fieldperm/fieldperm/verbs"}`,
		`{"Action":"output","Package":"github.com/fieldperm/fieldperm/schema","Output":"panic: no\n"}`,
		`{"Action":"fail","Package":"github.com/fieldperm/fieldperm/schema","Elapsed":0}`,
	} {
		p.read(s, []byte(line))
	}
	if passed, err := p.finish(nil); passed || err != nil {
		t.Errorf("passed %t, %v", passed, err)
	}
	for _, part := range []string{"verbs.go:3:1: syntax error", "panic: no", "FAIL github.com/fieldperm/fieldperm/verbs\n", "FAIL github.com/fieldperm/fieldperm/schema\n", "0 passed, 2 failed, 0 skipped"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is missing in\n%s", part, out.String())
		}
	}
}

// TestProgress_CommandsWithTheSamePackage: what one command prints of a test is not shown for another, and a failure of one hides none.
func TestProgress_CommandsWithTheSamePackage(t *testing.T) {
	inEmptyCheckout(t)
	var out strings.Builder
	p := newProgress(&out, io.Discard, "make test-all", times{})
	plain, race := &step{args: []string{"-run=TestX"}}, &step{args: []string{"-race"}}
	for _, line := range []struct {
		step *step
		text string
	}{
		{plain, `{"Action":"output","Package":"verbs","Test":"TestX","Output":"plain\n"}`},
		{race, `{"Action":"output","Package":"verbs","Test":"TestX","Output":"race\n"}`},
		{race, `{"Action":"pass","Package":"verbs","Test":"TestX"}`},
		{plain, `{"Action":"fail","Package":"verbs","Test":"TestX"}`},
		{plain, `{"Action":"fail","Package":"verbs"}`},
		{race, `{"Action":"output","Package":"verbs","Output":"exit status 66\n"}`},
		{race, `{"Action":"fail","Package":"verbs"}`},
	} {
		p.read(line.step, []byte(line.text))
	}
	if _, err := p.finish(nil); err != nil {
		t.Error(err)
	}
	text := out.String()
	for part, want := range map[string]int{"plain\n": 2, "race\n": 0, "exit status 66\n": 2, "FAIL verbs TestX\n": 1, "FAIL verbs\n": 1, "1 passed, 2 failed": 1} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("%q occurs %d times, want %d in\n%s", part, got, want, text)
		}
	}
}

// TestProgress_TellsHowLongItTookLastTime: a run that passed is noted; one that failed is not.
func TestProgress_TellsHowLongItTookLastTime(t *testing.T) {
	inEmptyCheckout(t)
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			fails bool
			says  string
		}{{true, "is not known yet"}, {false, "is not known yet"}, {true, "it took 4m05s here"}, {true, "it took 4m05s here"}} {
			past, err := readTimes(timesFile, "make test")
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			p := newProgress(&out, io.Discard, "make test", past)
			p.announce(step{targets: []string{"build"}}, []lane{{{packages: []string{"./verbs"}}}})
			if !strings.Contains(out.String(), c.says) {
				t.Errorf("%q is missing in %s", c.says, out.String())
			}
			if c.fails {
				p.read(&step{}, []byte(`{"Action":"fail","Package":"verbs","Test":"TestX"}`))
			}
			time.Sleep(4*time.Minute + 5*time.Second)
			if passed, err := p.finish(nil); passed == c.fails || err != nil {
				t.Errorf("passed %t, %v", passed, err)
			}
		}
	})
}

// inEmptyCheckout makes a directory with what make has made the working directory.
func inEmptyCheckout(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.Mkdir("bin", 0o755); err != nil { //nolint:gosec // As make makes it.
		t.Fatal(err)
	}
}
