package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// rounds bounds how often Fix lints the files again. A fix may make room for another one: a document that compiles has more findings.
const rounds = 10

// Fixed is one change that Fix made.
type Fixed struct {
	File string
	Line int
	What string
	Rule string
}

// Fix applies what has exactly one fix, until nothing has. It returns the changed files, with the names and in the order of files, and what it
// did. Everything else of a file stays as it is. Fixing the result again changes nothing.
func Fix(files []File, options Options) ([]File, []Fixed, []error) {
	files = slices.Clone(files)
	var done []Fixed
	for range rounds {
		result, errs := Run(files, options)
		if len(errs) > 0 {
			return nil, nil, errs
		}
		applied := apply(files, result.Findings)
		if len(applied) == 0 {
			return files, done, nil
		}
		done = append(done, applied...)
	}
	return nil, nil, []error{fmt.Errorf("--fix: the files are not good after %d rounds: correct them by hand", rounds)}
}

// apply changes the files. Of edits that touch each other the first is made; the others come with the next round.
func apply(files []File, findings []Finding) []Fixed {
	var done []Fixed
	for i := range files {
		type change struct {
			edit
			line int
			rule string
		}
		var changes []change
		for _, f := range findings {
			for _, e := range f.edits {
				if f.File == files[i].Name {
					changes = append(changes, change{e, f.Line, f.Rule})
				}
			}
		}
		slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.begin, b.begin) })
		var out bytes.Buffer
		end, last := 0, -1
		for _, c := range changes {
			if c.begin < end || c.begin == last {
				continue
			}
			out.Write(files[i].Raw[end:c.begin])
			out.WriteString(c.text)
			end, last = c.end, c.begin
			done = append(done, Fixed{files[i].Name, c.line, c.what, c.rule})
		}
		out.Write(files[i].Raw[end:])
		files[i].Raw = out.Bytes()
	}
	return done
}
