package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// rendered is a page.
type rendered struct {
	compressed []byte
	// size is the number of bytes before the compression.
	size int
	// tag identifies the content.
	tag string
}

// render makes the page of documents. Its trees need a traced schema, which the server does not keep.
func render(documents *compile.Documents, unknown map[runtimeschema.GroupKind]bool, maxBytes int) (*rendered, error) {
	traced := *documents
	traced.Traced = true
	// The faults are known: the schema in force was compiled from the same documents.
	compiled, _ := compile.Compile(traced)
	if compiled == nil {
		return nil, errNoSchema
	}
	forest := fieldtree.New(compiled)
	redact(forest)
	var out bytes.Buffer
	compressor, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	bounded := &bound{to: io.MultiWriter(compressor, sum), left: maxBytes}
	if err := page.Write(bounded, "Verbs of all kinds", page.Notes{Lacks: notes(compiled, unknown)}, forest); err != nil {
		if bounded.left < 0 {
			return nil, fmt.Errorf("page: %w: it has more than %d bytes: run kubectl fieldperm explain --all -o html, or explain KIND -o html for one kind", errTooLong, maxBytes)
		}
		return nil, err
	}
	if err := compressor.Close(); err != nil {
		return nil, err
	}
	return &rendered{slices.Clip(bytes.Clone(out.Bytes())), maxBytes - bounded.left, hex.EncodeToString(sum.Sum(nil)[:16])}, nil
}

// notes say what the page lacks. The faults themselves have names of files, and conditions: redact takes these out of the rest of the page.
func notes(compiled *schema.Schema, unknown map[runtimeschema.GroupKind]bool) []string {
	var out []string
	for gvk := range compiled.Failed() {
		out = append(out, fmt.Sprintf("The page lacks %s: a document about the kind is faulty. An administrator sees the fault in kubectl fieldperm status, and in the log of fieldperm-webhook.", gvk))
	}
	for gk := range maps.Keys(unknown) {
		out = append(out, fmt.Sprintf("The page lacks barriers of %s: a document about the kind is faulty.", gk))
	}
	slices.Sort(out)
	return out
}

// redact takes out of a forest what few users may read: the names of UncoveredPermissionSets, their conditions, and the names of files of
// the server. Sets get numbers, so that two of them are not taken for one.
func redact(f *fieldtree.Forest) {
	sets := map[string]string{}
	seen := map[*fieldtree.Node]bool{}
	for _, k := range f.Kinds {
		for i, b := range k.Sets {
			name, known := sets[b.Source]
			if !known {
				name = fmt.Sprintf("UncoveredPermissionSet %d", len(sets)+1)
				sets[b.Source] = name
			}
			shown := *b
			shown.Source = name
			if len(b.Conditions) > 0 {
				shown.Conditions = slices.Clone(b.Conditions[:1])
				shown.Conditions[0].Name, shown.Conditions[0].Expression = "", "the conditions of the set are true"
			}
			k.Sets[i] = &shown
		}
		withoutFiles(k.Root, seen)
	}
}

// withoutFiles replaces the names of files in the sources of verbs at and below a node.
func withoutFiles(n *fieldtree.Node, seen map[*fieldtree.Node]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	for _, list := range slices.Concat([][]*fieldtree.Verb{n.Verbs, n.Beside}, n.Trees) {
		for _, v := range list {
			v.Origins = slices.Clone(v.Origins)
			for i, from := range v.Origins {
				if isFile(from) {
					v.Origins[i].Source = "a file of fieldperm-webhook"
				}
			}
		}
	}
	for _, c := range n.Children {
		withoutFiles(c.Node, seen)
	}
}

// isFile reports whether a source is a file. All others are objects of the cluster, the catalogue, and documents of API servers.
func isFile(from schema.Origin) bool {
	switch from.Form {
	case schema.FormCatalogue, schema.FormOpenAPI:
		return false
	case schema.FormPermissionSchema, schema.FormScale, schema.FormSchemaKeys, schema.FormAnnotation:
	}
	return !strings.HasPrefix(from.Source, admission.DocumentSource("PermissionSchema", "")) && !strings.HasPrefix(from.Source, admission.DocumentSource("CustomResourceDefinition", ""))
}

// bound is a writer that fails after a number of bytes.
type bound struct {
	to   io.Writer
	left int
}

func (b *bound) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errTooLong
	}
	return b.to.Write(p)
}

// serve answers with the page, compressed if the client takes that. A client with the page of the same tag has it already.
func (p *rendered) serve(log klog.Logger, w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	compressed := accepts(r)
	tag := `"` + p.tag + `"`
	if compressed {
		tag = `"` + p.tag + `-gzip"`
	}
	header.Set("ETag", tag)
	header.Set("Vary", "Accept-Encoding")
	for _, list := range r.Header.Values("If-None-Match") {
		for one := range strings.SplitSeq(list, ",") {
			if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	var err error
	if compressed {
		header.Set("Content-Encoding", "gzip")
		header.Set("Content-Length", strconv.Itoa(len(p.compressed)))
		if r.Method != http.MethodHead {
			_, err = w.Write(p.compressed)
		}
	} else {
		header.Set("Content-Length", strconv.Itoa(p.size))
		if r.Method != http.MethodHead {
			err = p.writePlain(w)
		}
	}
	if err != nil {
		log.V(2).Info("Response was not read", "err", err)
	}
}

// writePlain decompresses piece by piece, so that a client without gzip takes no more memory than others.
func (p *rendered) writePlain(w io.Writer) error {
	plain, err := gzip.NewReader(bytes.NewReader(p.compressed))
	if err != nil {
		return err
	}
	_, err = io.CopyN(w, plain, int64(p.size))
	return err
}
