package grammar_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/generators/markers/grammar"
)

// FuzzLine proves for any line: offsets lie in the line, a value means the same when it is written in quotes, a line is either a marker
// or suspicious or neither, and a correction is a marker's name.
func FuzzLine(f *testing.F) {
	for _, line := range []string{
		` +permission-verb:"x"`, "+permission-excluded-when=`self == \"a\"`", "+k8s:openapi-gen=x-kubernetes-permission-verb:a\\\\b",
		"+permission_verb:x", "permission-verb=x", "/ +permission-excluded", "text +permission-verb:\"x\"", "+permission-verb:\"\\x00\"", "\u00a0+permission-verb:\u00e9",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		m, found, err := grammar.Parse(line)
		suspect := grammar.Suspect(line)
		if found && suspect != nil {
			t.Fatalf("a marker is suspicious: %v", suspect)
		}
		if !found && err != nil {
			t.Fatalf("no marker, and the error %v", err)
		}
		var fault *grammar.Fault
		if errors.As(err, &fault) {
			suspect = fault
		} else if err != nil {
			t.Fatalf("the error is %T", err)
		}
		if suspect != nil && (suspect.Offset < 0 || suspect.Offset > suspect.End || suspect.End > len(line) || suspect.Message == "") {
			t.Fatalf("the fault is %+v", suspect)
		}
		if !found || err != nil {
			return
		}
		if m.Value == "" || m.Offset > m.ValueOffset || m.ValueOffset > len(line) || strings.TrimSpace(line[:m.Offset]) != "" || line[m.Offset] != '+' {
			t.Fatalf("the marker is %+v", m)
		}
		again, found, err := grammar.Parse(m.Key.Marker() + ":" + strconv.Quote(m.Value))
		if !found || err != nil || again.Value != m.Value || again.Key != m.Key {
			t.Fatalf("in quotes it is %+v, %v, %v; want %+v", again, found, err, m)
		}
	})
}
