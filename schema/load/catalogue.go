package load

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/catalog"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Catalogue returns the built-in permissions and the recorded writes of the API server itself. If strict is true, an entry that is not
// optional is required for kinds of the linked version. If strict is false, every entry is optional, because a server of another version
// may lack a field. The error joins all faults. Callers must not change the entries.
func Catalogue(strict bool) ([]compile.PermissionDocument, error) {
	read := lenient
	if strict {
		read = strictly
	}
	docs, err := read()
	return slices.Clone(docs), err
}

// lenient and strictly read the embedded files once.
var lenient, strictly = sync.OnceValues(func() ([]compile.PermissionDocument, error) { return embedded(false) }),
	sync.OnceValues(func() ([]compile.PermissionDocument, error) { return embedded(true) })

func embedded(strict bool) ([]compile.PermissionDocument, error) {
	docs, err := catalogue(catalog.Files(), strict)
	if err != nil {
		return nil, err
	}
	return append(docs, writes()...), nil
}

// catalogueFile is the format of one file; schema/catalog/README.md describes it.
type catalogueFile struct {
	Fragments map[string][]catalogueEntry `json:"fragments"`
	Kinds     []catalogueKind             `json:"kinds"`
}

type catalogueKind struct {
	Group       string           `json:"group"`
	Kind        string           `json:"kind"`
	Versions    []string         `json:"versions"`
	Permissions []catalogueEntry `json:"permissions"`
}

type catalogueEntry struct {
	v1alpha1.FieldPermission `json:",inline"`
	Role                     schema.Role    `json:"role"`
	Optional                 bool           `json:"optional"`
	Bare                     bool           `json:"bare"`
	Why                      string         `json:"why"`
	Powers                   []schema.Power `json:"powers"`
}

// alone reports whether the entry only includes a fragment.
func (e *catalogueEntry) alone() bool {
	return e.Role == schema.RoleNone && e.Why == "" && len(e.Powers) == 0 &&
		e.FieldPermission == v1alpha1.FieldPermission{Path: e.Path, Include: e.Include}
}

// catalogueReader holds the fragments of all files while kinds are expanded.
type catalogueReader struct {
	strict    bool
	fragments map[string][]catalogueEntry
	// contained are the fragments that expand has included, with their places.
	contained []compile.Contained
	errs      []error
}

func catalogue(files fs.FS, strict bool) ([]compile.PermissionDocument, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	r, decoded := newCatalogueReader(files, names, strict)
	var docs []compile.PermissionDocument
	kinds := map[string][]string{}
	for i, name := range names {
		for j := range decoded[i].Kinds {
			k := &decoded[i].Kinds[j]
			at := fmt.Sprintf("/kinds/%d", j)
			id := k.Kind + "." + k.Group
			for _, v := range orEvery(k.Versions) {
				if twice := kinds[id]; slices.Contains(twice, v) || len(twice) > 0 && (v == "" || twice[0] == "") {
					r.errs = append(r.errs, fault(source(name), at, "kind %q of group %q stands twice: merge the two", k.Kind, k.Group))
				}
				kinds[id] = append(kinds[id], v)
			}
			docs = append(docs, r.document(name, at, k))
		}
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	return docs, nil
}

// newCatalogueReader decodes all files. The reader has their fragments and faults.
func newCatalogueReader(files fs.FS, names []string, strict bool) (*catalogueReader, []catalogueFile) {
	r := &catalogueReader{strict: strict, fragments: map[string][]catalogueEntry{}}
	decoded := make([]catalogueFile, len(names))
	defined := map[string]string{}
	for i, name := range names {
		r.decode(files, name, &decoded[i])
		for fragment, list := range decoded[i].Fragments {
			if first, twice := defined[fragment]; twice {
				r.errs = append(r.errs, fault(source(name), fieldpath.Pointer("/fragments", fragment), "fragment %q stands in %s too: rename one of them", fragment, first))
			}
			defined[fragment] = name
			r.fragments[fragment] = list
		}
	}
	return r, decoded
}

// writes returns the recorded fields that the API server writes by itself (D13).
func writes() []compile.PermissionDocument {
	type about struct {
		kind     endpoint.Kind
		versions string
	}
	var docs []compile.PermissionDocument
	known, entries := map[about]int{}, map[about]map[string]int{}
	for _, w := range endpoint.FreeWrites() {
		for _, version := range w.Versions {
			of := about{w.Kind, version}
			at, ok := known[of]
			if !ok {
				at = len(docs)
				known[of], entries[of] = at, map[string]int{}
				docs = append(docs, compile.PermissionDocument{
					Source: "endpoint/written.yaml#" + w.Kind.Kind, Rank: compile.RankCatalogue,
					Group: w.Kind.Group, Kind: w.Kind.Kind, Versions: []string{version},
				})
			}
			doc := &docs[at]
			i, ok := entries[of][w.Field]
			if !ok {
				i = len(doc.Entries)
				entries[of][w.Field] = i
				doc.Entries = append(doc.Entries, compile.Entry{
					FieldPermission: v1alpha1.FieldPermission{Path: w.Field}, Optional: true, Pointer: fieldpath.Pointer("", w.Field),
				})
			}
			doc.Entries[i].Writes = append(doc.Entries[i].Writes, w)
		}
	}
	return docs
}

func source(file string) string { return "catalogue/" + file }

// orEvery returns "" for an empty list, which means every version.
func orEvery(versions []string) []string {
	if len(versions) == 0 {
		return []string{""}
	}
	return versions
}

func (r *catalogueReader) decode(files fs.FS, name string, into *catalogueFile) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		r.errs = append(r.errs, fault(source(name), "", "cannot be read: %v", err))
		return
	}
	raw, errs := single(source(name), text)
	if len(errs) == 0 {
		errs = decodeStrict(source(name), "", raw, into)
	}
	r.errs = append(r.errs, errs...)
}

func (r *catalogueReader) document(file, at string, k *catalogueKind) compile.PermissionDocument {
	doc := compile.PermissionDocument{
		// Each kind has its own source, so that a fault in one kind does not affect others.
		Source: source(file) + "#" + k.Kind, Rank: compile.RankCatalogue,
		Group: k.Group, Kind: k.Kind, Versions: k.Versions,
	}
	if k.Kind == "*" {
		doc.Rank = compile.RankEveryKind
	}
	if k.Kind == "" || (k.Kind == "*") != (k.Group == "*") {
		r.errs = append(r.errs, fault(doc.Source, at, "kind %q of group %q: name one kind, or \"*\" for both", k.Kind, k.Group))
	}
	r.contained = nil
	doc.Entries = r.expand(doc.Source, at+"/permissions", "", inclusion{optional: !r.strict}, k.Permissions, nil)
	doc.Contains = r.contained
	return doc
}

// inclusion is what an include says of all entries of its fragment. part means that the field may lack some of its fields.
type inclusion struct{ optional, bare, part bool }

func (i inclusion) of(e *catalogueEntry) inclusion {
	return inclusion{i.optional || e.Optional, i.bare || e.Bare, i.part || e.Optional}
}

// expand returns the entries below a path with every fragment expanded. within are the names of the fragments that are being expanded.
func (r *catalogueReader) expand(source, at, path string, as inclusion, list []catalogueEntry, within []string) []compile.Entry {
	var out []compile.Entry
	for i, e := range list {
		place := fmt.Sprintf("%s/%d", at, i)
		e.Path = path + e.Path
		if e.Include == "" {
			if !knownRole(e.Role) {
				r.errs = append(r.errs, fault(source, place+"/role", "role %q is unknown: use identity, serverWritten or ownership", e.Role))
			}
			for _, p := range e.Powers {
				if p.Sentence() == "" {
					r.errs = append(r.errs, fault(source, place+"/powers", "power %q is unknown: use one of %q", p, schema.AllPowers()))
				}
			}
			if e.Verb == "" && (e.Why != "" || len(e.Powers) > 0) {
				r.errs = append(r.errs, fault(source, place, "has no verb to have powers: add a verb"))
			}
			out = append(out, compile.Entry{
				FieldPermission: e.FieldPermission, Role: e.Role, Optional: as.of(&e).optional, Bare: as.of(&e).bare, Pointer: place,
				Why: e.Why, Powers: e.Powers,
			})
			continue
		}
		fragment, known := r.fragments[e.Include]
		switch {
		case !e.alone():
			r.errs = append(r.errs, fault(source, place, "includes %q and says something itself: make two entries of it", e.Include))
		case !known:
			r.errs = append(r.errs, fault(source, place+"/include", "fragment %q does not exist: correct the name", e.Include))
		case slices.Contains(within, e.Include):
			r.errs = append(r.errs, fault(source, place+"/include", "fragment %q includes itself, through %s: break the cycle", e.Include, strings.Join(within, ", ")))
		default:
			r.contained = append(r.contained, compile.Contained{Fragment: compile.Fragment{Name: e.Include, At: normal(e.Path)}, IsPart: as.of(&e).part})
			out = append(out, r.expand(source, fieldpath.Pointer(place, "include", e.Include), e.Path, as.of(&e), fragment, append(slices.Clone(within), e.Include))...)
		}
	}
	return out
}

func knownRole(role schema.Role) bool {
	switch role {
	case schema.RoleNone, schema.RoleIdentity, schema.RoleServerWritten, schema.RoleOwnership:
		return true
	}
	return false
}
