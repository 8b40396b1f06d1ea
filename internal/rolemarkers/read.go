package rolemarkers

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
	"sigs.k8s.io/controller-tools/pkg/rbac"
)

// Options say what to read. They are those of controller-gen.
type Options struct {
	// Paths are patterns of packages, such as ./....
	Paths []string
	// Dir is the absolute directory that Paths and the positions of faults are relative to.
	Dir string
	// RoleName is the name of the role.
	RoleName string
	// Header is the text before the roles.
	Header string
	// BuildTags are the tags with which the packages are loaded.
	BuildTags []string
}

// Markers are the markers of some packages.
type Markers struct {
	// Plain is what controller-gen rbac writes. Roles are the objects in it: rbacv1.ClusterRole and rbacv1.Role.
	Plain []byte
	Roles []any
	// RBAC are the markers that Plain is made of, and Fields those of fieldperm.
	RBAC   []RBAC
	Fields []Fields
}

// RBAC is a marker +kubebuilder:rbac.
type RBAC struct {
	Position token.Position
	rbac.Rule
}

// Fields is a marker +fieldperm:rbac.
type Fields struct {
	// Groups and Resources are as in +kubebuilder:rbac. Versions are the versions of the kinds that the paths are of, none for the newest.
	Groups, Resources, Fields, Versions []string
	// Verbs are the verbs that granular verbs take the place of: create, update and patch.
	Verbs []string

	Position token.Position
	text     string
}

// Fault is a fault at a place of a Go file.
type Fault struct {
	Position token.Position
	Message  string
}

func (f *Fault) Error() string { return f.Position.String() + ": " + f.Message }

// Fault returns a fault about a part of the marker, at the place of that part.
func (f *Fields) Fault(part, format string, args ...any) error {
	at := f.Position
	at.Column += offset(f.text, part)
	return &Fault{at, fmt.Sprintf(format, args...)}
}

// offset returns where a value of a list is in the text of a marker, 0 if it is not there as it was read, such as with escapes.
func offset(text, value string) int {
	for i := 0; value != "" && i < len(text); i++ {
		end := i + len(value)
		if strings.HasPrefix(text[i:], value) && i > 0 && strings.IndexByte("=;,{`\"", text[i-1]) >= 0 &&
			(end == len(text) || strings.IndexByte(";,}`\"/", text[end]) >= 0) {
			return i
		}
	}
	return 0
}

// Read reads packages. The errors are all faults, in the order of the files.
func Read(o Options) (*Markers, []error) {
	files := token.NewFileSet()
	roots, err := loader.LoadRootsWithConfig(&packages.Config{Fset: files, Dir: o.Dir, BuildFlags: []string{"-tags=" + strings.Join(o.BuildTags, ",")}}, o.Paths...)
	if err != nil {
		return nil, []error{fmt.Errorf("paths %q: cannot be loaded: %w: name packages of a Go module, ./... for all", o.Paths, err)}
	}
	if len(roots) == 0 {
		return nil, []error{fmt.Errorf("paths %q: match no package: name packages of a Go module, ./... for all", o.Paths)}
	}
	collector := &markers.Collector{Registry: &markers.Registry{}}
	if err := (rbac.Generator{}).RegisterMarkers(collector.Registry); err != nil {
		return nil, []error{err}
	}
	out := &Markers{}
	var errs []error
	for _, root := range roots {
		root.NeedSyntax()
		errs = append(errs, faultsOf(root, o.Dir)...)
		s := &scanner{files: files, dir: o.Dir, into: out}
		for _, file := range root.Syntax {
			s.file(file)
		}
		errs = append(errs, s.errs...)
	}
	if len(errs) > 0 {
		return nil, inOrder(errs)
	}
	ctx := &genall.GenerationContext{Collector: collector, Roots: roots}
	if out.Roles, err = rbac.GenerateRoles(ctx, o.RoleName); err != nil {
		return nil, []error{fmt.Errorf("paths %q: %w", o.Paths, err)}
	}
	for _, root := range roots {
		errs = append(errs, faultsOf(root, o.Dir)...)
	}
	if len(errs) > 0 {
		return nil, inOrder(errs)
	}
	if len(out.Roles) == 0 {
		return nil, []error{fmt.Errorf("paths %q: have no marker +kubebuilder:rbac: name the packages of the controllers", o.Paths)}
	}
	out.Plain, err = YAML(o.Header, out.Roles)
	if err != nil {
		return nil, []error{err}
	}
	return out, nil
}

// faultsOf returns the errors of a package, except type errors: markers are comments, and controller-gen rbac checks no types.
func faultsOf(root *loader.Package, dir string) []error {
	var out []error
	for i := range root.Errors {
		e := &root.Errors[i]
		if e.Kind == packages.TypeError {
			continue
		}
		at := e.Pos
		if rel, err := filepath.Rel(dir, at); err == nil && filepath.IsAbs(at) && !strings.HasPrefix(rel, "..") {
			at = rel
		}
		if at == "" || at == "-" {
			at = root.PkgPath
		}
		out = append(out, fmt.Errorf("%s: %s: correct the package, because its markers cannot be read", at, strings.ReplaceAll(e.Msg, "\n", " ")))
	}
	return slices.CompactFunc(out, func(a, b error) bool { return a.Error() == b.Error() })
}

func inOrder(errs []error) []error {
	slices.SortStableFunc(errs, func(a, b error) int {
		var x, y *Fault
		if !errors.As(a, &x) || !errors.As(b, &y) {
			return 0
		}
		if x.Position.Filename != y.Position.Filename {
			return strings.Compare(x.Position.Filename, y.Position.Filename)
		}
		return x.Position.Offset - y.Position.Offset
	})
	return errs
}

// YAML returns roles in the form in which controller-gen writes them.
func YAML(header string, roles []any) ([]byte, error) {
	var out memory
	ctx := genall.GenerationContext{OutputRule: &out}
	err := ctx.WriteYAML("role.yaml", header, roles, genall.WithTransform(genall.TransformRemoveCreationTimestamp))
	return out.Bytes(), err
}

// memory takes the output of a generator.
type memory struct{ bytes.Buffer }

// Open returns the buffer, whatever the name of the file is.
func (m *memory) Open(*loader.Package, string) (io.WriteCloser, error) { return m, nil }

// Close does nothing.
func (*memory) Close() error { return nil }

// scanner finds markers in the comments of files.
type scanner struct {
	files *token.FileSet
	dir   string
	into  *Markers
	errs  []error
}

func (s *scanner) file(file *ast.File) {
	for _, group := range file.Comments {
		for _, c := range group.List {
			s.comment(c)
		}
	}
}

// position returns a place within a comment.
func (s *scanner) position(c *ast.Comment, offset int) token.Position {
	at := s.files.Position(c.Pos() + token.Pos(offset))
	if rel, err := filepath.Rel(s.dir, at.Filename); err == nil && !strings.HasPrefix(rel, "..") {
		at.Filename = rel
	}
	return at
}

func (s *scanner) comment(c *ast.Comment) {
	if strings.HasPrefix(c.Text, "/*") {
		offset := 0
		for line := range strings.Lines(c.Text) {
			text := strings.TrimLeft(line, "/* \t")
			if isOurs(text) {
				s.fault(c, offset+strings.Index(line, text), "marker %q is in a block comment, where markers are not read: write it after //", strings.TrimSpace(text))
			}
			offset += len(line)
		}
		return
	}
	text := strings.TrimSpace(c.Text[2:])
	offset := strings.Index(c.Text, text)
	switch {
	case strings.HasPrefix(text, "+kubebuilder:rbac:"):
		if value, err := rbac.RuleDefinition.Parse(text); err == nil { // A faulty one is an error of the generator.
			if rule, ok := value.(rbac.Rule); ok {
				s.into.RBAC = append(s.into.RBAC, RBAC{s.position(c, offset), rule})
			}
		}
	case strings.HasPrefix(text, prefix):
		f, message := parse(text)
		if message != "" {
			s.fault(c, offset, "%s", message)
			return
		}
		f.Position, f.text = s.position(c, offset), text
		s.into.Fields = append(s.into.Fields, *f)
	case isOurs(text):
		s.fault(c, offset, "marker %q is none of fieldperm: write it like %s", text, example)
	}
}

func (s *scanner) fault(c *ast.Comment, offset int, format string, args ...any) {
	s.errs = append(s.errs, &Fault{s.position(c, offset), fmt.Sprintf(format, args...)})
}
