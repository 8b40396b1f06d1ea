package plugin

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/internal/diagnosis"
)

var updateStatus = flag.Bool("update", false, "rewrite testdata/status; commit only if you understand every change")

// TestStatusGolden: testdata/status/NAME.json is a status, made after those of real clusters, NAME.text its form for readers.
func TestStatusGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/status/*.json")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s diagnosis.Status
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		o := &standing{options{streams: genericiooptions.IOStreams{Out: &out}, output: outputText}}
		if err := o.print(&s); err != nil {
			t.Fatal(err)
		}
		golden := strings.TrimSuffix(file, ".json") + ".text"
		if *updateStatus {
			if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", golden, out.String(), want)
		}
		for _, format := range []string{outputJSON, outputYAML, outputHTML} {
			out.Reset()
			o.output = format
			if err := o.print(&s); err != nil || !strings.Contains(out.String(), "failurePolicy") && !strings.Contains(out.String(), "FAILUREPOLICY") && len(s.Webhooks) > 0 {
				t.Errorf("%s as %s: %v", file, format, err)
			}
		}
	}
}

func TestStatusShowsNothingThatMovesTheCursor(t *testing.T) {
	s := &diagnosis.Status{State: diagnosis.NotProven, Reason: "a\x1b[31mb", Events: []diagnosis.Event{{Replica: "r\u202e", Message: "m\x07"}}, Missing: []diagnosis.Missing{{What: "w\x1b", Error: "e\x1b"}}}
	for _, format := range []string{outputText, outputJSON, outputYAML, outputHTML} {
		var out bytes.Buffer
		o := &standing{options{streams: genericiooptions.IOStreams{Out: &out}, output: format}}
		if err := o.print(s); err != nil || strings.ContainsAny(out.String(), "\x1b\u202e\x07") {
			t.Errorf("%s: %v %q", format, err, out.String())
		}
	}
}
