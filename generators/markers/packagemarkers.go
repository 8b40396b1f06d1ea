package markers

import (
	"strings"
)

// packageMarkers refuses a second name of a group or version in a package, because controller-gen takes the first and ignores the others.
func (g *crdGeneration) packageMarkers() {
	for _, root := range g.set.Roots {
		first := map[string]*Value{}
		for _, file := range root.Syntax {
			for _, group := range file.Comments {
				for _, comment := range group.List {
					name, text, found := strings.Cut(strings.TrimSpace(strings.TrimPrefix(comment.Text, "//")), "=")
					if !found || name != "+groupName" && name != "+versionName" {
						continue
					}
					v := &Value{Position: root.Fset.Position(comment.Pos())}
					v.Value = text
					if known := first[name]; known == nil {
						first[name] = v
					} else if known.Value != text {
						g.errs.at(v.Position, "marker %q names %q, and %q is named at %s: a package is one version of one group: put each version into a package of its own", name, text, known.Value, known.Position)
					}
				}
			}
		}
	}
}
