package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// whyCases are the answers of why that are in testdata/why/golden/NAME.FORMAT.
var whyCases = []struct{ name, args, formats string }{
	{"verb", "-f why/verb.txt -n shop", "text json yaml"},
	{"barrier", "-f why/barrier.txt", "text"},
	{"rbac", "-f why/rbac.txt", "text"},
	{"not_proven", "-f why/not_proven.txt", "text"},
	{"lacks_get", "-f why/lacks_get.txt", "text"},
	{"policy", "-f why/policy.txt", "text json"},
	{"failure", "-f why/failure.txt", "text"},
	{"hostile", "-f why/hostile.txt -n shop", "text json"},
	{"audit", "-f why/audit.jsonl", "text json"},
}

func TestWhyGolden(t *testing.T) {
	t.Chdir("testdata")
	goldens := map[string]bool{}
	for _, test := range whyCases {
		for format := range strings.FieldsSeq(test.formats) {
			file := filepath.Join("why", "golden", test.name+"."+format)
			goldens[file] = true
			t.Run(test.name+"/"+format, func(t *testing.T) {
				code, stdout, stderr := execute(t, "", append([]string{"why", "-o", format}, strings.Fields(test.args)...)...)
				if code != 0 || stderr != "" {
					t.Errorf("exit code %d, stderr %q", code, stderr)
				}
				golden(t, file, stdout)
			})
		}
	}
	files, err := filepath.Glob("why/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !goldens[file] {
			t.Errorf("%s belongs to no case: delete it", file)
		}
	}
}

// TestWhyShowsNothingThatMovesTheCursor: names of users and keys may have any characters.
func TestWhyShowsNothingThatMovesTheCursor(t *testing.T) {
	t.Chdir("testdata")
	for _, format := range []string{"text", "json", "yaml", "html"} {
		_, stdout, _ := execute(t, "", "why", "-f", "why/hostile.txt", "-n", "shop", "-o", format)
		if strings.ContainsAny(stdout, "\x1b\u202e") || !strings.Contains(stdout, "granular:data") {
			t.Errorf("%s: %q", format, stdout)
		}
	}
}

func TestWhyOfInputWithoutARefusal(t *testing.T) {
	t.Chdir("testdata")
	for _, test := range []struct {
		stdin, args string
		code        int
		stderr      string
	}{
		{"hello\n", "", 1, "give the whole message"},
		{"", "", 1, "give the whole message"},
		{`pods "x" is forbidden: exceeded quota: q`, "", 1, "a ResourceQuota refused the write"},
		{`{"kind":"Event","stage":"ResponseComplete","responseStatus":{"code":422,"message":"invalid"}}`, "", 1, "1 were refused or failed for another reason"},
		{"{\n not json", "", 2, "give an event of an audit log, an AdmissionReview or the message"},
		{"", "-f why/none.txt", 2, "name a file that can be read"},
		{"", "-o wide", 2, `--output "wide" is not known: use text, json, yaml or html`},
		{"", "-f why/verb.txt --who --server https://127.0.0.1:1", 2, "the answer lacks who could grant it"},
	} {
		code, _, stderr := execute(t, test.stdin, append([]string{"why"}, strings.Fields(test.args)...)...)
		if code != test.code || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%q %s: exit code %d, stderr %q", test.stdin, test.args, code, stderr)
		}
	}
}

func TestWhyReadsStandardInput(t *testing.T) {
	t.Chdir("testdata")
	raw, err := os.ReadFile("why/verb.txt")
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := execute(t, string(raw), "why")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "The message does not name the namespace") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	for _, args := range [][]string{{string(raw)}, strings.Fields(string(raw))} {
		if code, as, stderr := execute(t, "", append([]string{"why", "--"}, args...)...); code != 0 || stderr != "" || as != stdout {
			t.Errorf("as an argument: exit code %d, %s%s", code, as, stderr)
		}
	}
	if code, _, stderr := execute(t, "", "why", "x", "-f", "why/verb.txt"); code != 2 || !strings.Contains(stderr, "give one of the two") {
		t.Errorf("a message and a file: exit code %d, %s", code, stderr)
	}
}

func TestStatusRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"status -o wide":                      `--output "wide" is not known: use text, json, yaml or html`,
		"status --server https://127.0.0.1:1": "or see https://github.com/fieldperm/fieldperm",
	} {
		code, stdout, stderr := execute(t, "", strings.Fields(args)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}
