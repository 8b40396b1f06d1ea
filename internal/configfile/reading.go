package configfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"

	"github.com/fieldperm/fieldperm/internal/spelling"
)

// most is the maximum number of faults that are listed, so that they fit on a screen. More faults usually have one cause, or the
// file is of another kind.
const most = 20

// reading is one file during reading.
type reading struct {
	file     string
	tree     tree
	places   *places
	language language
	problems Problems
	warnings []string
	// faulty are the paths with a fault. More faults at such a path or below it follow from the first and are not reported.
	faulty map[string]bool
	// healed is the value of the tree without the parts that do not fit its type.
	healed any
}

// newReading parses the file and records the places. If YAML cannot parse a value, newReading quotes the value and continues, to
// find other faults. If the file could not be parsed at all, the reading has no tree.
func newReading(file string, data []byte, language language) *reading {
	r := &reading{file: file, language: language, faulty: map[string]bool{}}
	parsed, fault := parse(file, data)
	mended := map[int]int{}
	for fault != nil {
		r.problems = append(r.problems, *fault)
		if !strings.HasPrefix(fault.Message, notYAML) {
			break
		}
		better, ok := quoteLine(data, fault.Line)
		if _, again := mended[fault.Line]; !ok || again || len(r.problems) >= most {
			break
		}
		mended[fault.Line] = len(r.problems) - 1
		data = better
		parsed, fault = parse(file, data)
	}
	if fault != nil {
		return r
	}
	r.tree, r.healed = parsed, parsed.value
	r.places = &places{
		lines:    map[string]int{},
		text:     strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n"),
		negation: language.rewritten,
		report:   func(path string, line int, message, cure string) { r.add(path, line, message, cure) },
	}
	if parsed.root != nil && len(parsed.root.Content) > 0 {
		content := parsed.root.Content[0]
		r.places.index(content, "", content.Line, 0)
	}
	r.attribute(mended)
	return r
}

// attribute adds to each YAML fault the key on its line. mended are the indexes of the faults by line.
func (r *reading) attribute(mended map[int]int) {
	if len(mended) == 0 {
		return
	}
	for path, line := range r.places.lines {
		if i, ok := mended[line]; ok && (r.value(path) == nil || reflect.TypeOf(r.value(path)).Kind() == reflect.String) {
			r.problems[i].Key = oneLine(path)
			r.faulty[path] = true
		}
	}
}

// report adds a fault at a path, unless the path or a parent already has one.
func (r *reading) report(path, message, cure string) {
	if !r.covered(path) {
		r.add(path, r.places.line(path), message, cure)
	}
}

func (r *reading) add(path string, line int, message, cure string) {
	r.faulty[path] = true
	r.problems = append(r.problems, Problem{File: r.file, Line: max(1, line), Key: oneLine(path), Message: oneLine(message), Cure: oneLine(cure)})
}

func (r *reading) warn(path, message, cure string) {
	p := Problem{File: r.file, Line: r.places.line(path), Key: oneLine(path), Message: oneLine(message), Cure: oneLine(cure)}
	r.warnings = append(r.warnings, p.Error())
}

// covered reports whether a path or a parent has a fault.
func (r *reading) covered(path string) bool {
	for ; path != ""; path = parent(path) {
		if r.faulty[path] {
			return true
		}
	}
	return r.faulty[""]
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

// decode reads the file as a configuration of a kind into its internal form. It decodes strictly, as k8s.io/apiserver does. If that
// finds faults, it decodes the value without the faulty parts, only to find more faults. It returns nil if nothing can be decoded.
func (r *reading) decode(kind, flag string, data []byte) runtime.Object {
	scheme := newScheme()
	root, ok := r.tree.value.(map[string]any)
	if !ok {
		r.report("", fmt.Sprintf("file is %s, must be a mapping", described(r.tree.value)), "write a configuration that starts with apiVersion and kind")
		return nil
	}
	version, ok := r.header(scheme, root, kind, flag)
	if !ok {
		return nil
	}
	gvk := runtimeschema.GroupVersionKind{Group: apiserver.GroupName, Version: version, Kind: kind}
	object, err := scheme.New(gvk)
	if err != nil {
		r.report("apiVersion", err.Error(), "")
		return nil
	}
	fitting, _ := shape{
		report: func(path, message, cure string) { r.report(path, message, cure) },
		unknown: func(path, meant, cure string) {
			r.report(path, "is not a field of "+kind+" "+version, cure)
			// The misspelt key counts for the one that is meant, so do not report that one as missing too.
			if at := child(parent(path), meant); meant != "" && r.value(at) == nil {
				r.faulty[at] = true
			}
		},
	}.fit(root, "", reflect.TypeOf(object))
	healed := fitting.(map[string]any)
	healed["apiVersion"], healed["kind"] = gvk.GroupVersion().String(), kind
	r.healed = healed
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	out, err := runtime.Decode(decoder, data)
	if err == nil {
		return out
	}
	if len(r.problems) == 0 {
		r.report("", "cannot be decoded: "+err.Error(), "")
	}
	raw, err := json.Marshal(healed)
	if err != nil {
		return nil
	}
	if out, err = runtime.Decode(decoder, raw); err != nil {
		return nil
	}
	return out
}

// header checks apiVersion and kind. It returns the version to decode with, and false if decoding makes no sense.
func (r *reading) header(scheme *runtime.Scheme, root map[string]any, kind, flag string) (string, bool) {
	group := apiserver.GroupName
	var versions, groupVersions []string
	for _, gv := range scheme.VersionsForGroupKind(runtimeschema.GroupKind{Group: group, Kind: kind}) {
		if gv.Version != runtime.APIVersionInternal {
			versions, groupVersions = append(versions, gv.Version), append(groupVersions, gv.String())
		}
	}
	slices.Sort(groupVersions)
	if given, there := root["kind"]; !there {
		r.report("kind", "is missing", "write kind: "+kind)
	} else if given != kind {
		text, _ := given.(string)
		cure := "write kind: " + kind
		switch other := map[string]string{"AuthorizationConfiguration": "--authorization-config", "AuthenticationConfiguration": "--authentication-config"}[text]; {
		case other != "":
			r.report("kind", fmt.Sprintf("%q is not what %s takes", text, flag), "give this file to "+other)
			return "", false
		case spelling.Nearest(text, []string{kind}) == "":
			r.report("kind", fmt.Sprintf("is %s, must be %s", described(given), kind), "give "+flag+" a file of that kind")
			return "", false
		}
		r.report("kind", quoted(text)+" does not exist", cure)
	}
	given, there := root["apiVersion"]
	text, _ := given.(string)
	for _, version := range versions {
		if text == group+"/"+version {
			return version, true
		}
	}
	if !there || given == nil {
		r.report("apiVersion", "is missing", "write apiVersion: "+group+"/v1")
	} else {
		r.report("apiVersion", fmt.Sprintf("%s does not exist for %s", described(given), kind), "write "+oneOf(groupVersions))
	}
	return "v1", true
}

// result returns the faults in the order of lines, those of this file before those of the files that it names.
func (r *reading) result() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		if a.File != b.File {
			switch r.file {
			case a.File:
				return -1
			case b.File:
				return 1
			}
			return strings.Compare(a.File, b.File)
		}
		return cmp.Or(a.Line-b.Line, strings.Compare(a.Key, b.Key))
	})
	r.problems = slices.Compact(r.problems)
	if n := len(r.problems); n > most {
		last := r.problems[most-1]
		r.problems = append(r.problems[:most-1:most-1], Problem{File: last.File, Line: last.Line, Message: fmt.Sprintf("%d more faults from here on", n-most+1), Cure: "mend those above first"})
	}
	return r.problems
}
