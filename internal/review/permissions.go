package review

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/schema"
)

// permissionsMethods are the methods of GET /permissions.
const permissionsMethods = http.MethodGet + ", " + http.MethodHead

// PermissionsHandler serves GET /permissions: the verbs of the permission schema in force, by kind, as JSON. The query parameters
// group, version and kind select kinds, each at most once; group= is the core group. Equal schemas give equal bytes and equal
// ETags, so that requests with If-None-Match are cheap.
func (a API) PermissionsHandler() http.Handler {
	var kept atomic.Pointer[catalogue]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log := klog.FromContext(r.Context()).WithValues("endpoint", "permissions")
		body, err := a.permissions(r, &kept)
		if err != nil {
			refuse(log, w, err, permissionsMethods)
			return
		}
		sum := sha256.Sum256(body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:16])+`"`)
		w.Header().Set("Cache-Control", "private, no-cache")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	})
}

func (a API) permissions(r *http.Request, kept *atomic.Pointer[catalogue]) ([]byte, error) {
	if _, err := callerOf(r); err != nil {
		return nil, err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, refusef(http.StatusMethodNotAllowed, "method %q is not allowed: use GET", r.Method)
	}
	wanted, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	var compiled *schema.Schema
	if a.Schema != nil {
		compiled = a.Schema()
	}
	if compiled == nil {
		return nil, refusef(http.StatusServiceUnavailable, "permission schema: is not loaded yet: try again, and look at /readyz if it stays so")
	}
	all := kept.Load()
	if all == nil || all.schema != compiled {
		if all, err = newCatalogue(compiled); err != nil {
			return nil, err
		}
		kept.Store(all)
	}
	return all.selected(wanted)
}

// selection is the selected kinds; a nil field selects all.
type selection struct{ group, version, kind *string }

func selectionOf(r *http.Request) (selection, error) {
	var out selection
	fields := map[string]**string{"group": &out.group, "version": &out.version, "kind": &out.kind}
	query := r.URL.Query()
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		field, known := fields[name]
		switch {
		case !known:
			return selection{}, refusef(http.StatusBadRequest, "query parameter %q is not known: use group, version and kind", clipped(name))
		case len(query[name]) > 1:
			return selection{}, refusef(http.StatusBadRequest, "query parameter %q occurs %d times: give it once", name, len(query[name]))
		}
		*field = &query[name][0]
	}
	return out, nil
}

func (s selection) has(group, version, kind string) bool {
	is := func(wanted *string, value string) bool { return wanted == nil || *wanted == value }
	return is(s.group, group) && is(s.version, version) && is(s.kind, kind)
}

func (s selection) String() string {
	text := ""
	for _, part := range []struct {
		name  string
		value *string
	}{{"group", s.group}, {"version", s.version}, {"kind", s.kind}} {
		if part.value != nil {
			text += fmt.Sprintf(" %s %q", part.name, clipped(*part.value))
		}
	}
	return text
}

// selected returns the selected kinds as JSON.
func (c *catalogue) selected(wanted selection) ([]byte, error) {
	if wanted == (selection{}) {
		return c.whole, nil
	}
	var kinds []kindEntry
	for i := range c.kinds {
		if k := &c.kinds[i]; wanted.has(k.Group, k.Version, k.Kind) {
			kinds = append(kinds, *k)
		}
	}
	if len(kinds) > 0 {
		return render(kinds)
	}
	for gvk := range c.schema.Failed() {
		if wanted.has(gvk.Group, gvk.Version, gvk.Kind) {
			// The fault may name a file of the server, or quote a condition: every authenticated user may ask here.
			return nil, refusef(http.StatusServiceUnavailable, "permission schema of %s: a document about the kind is faulty: an administrator finds the fault with kubectl fieldperm status, and in the log of fieldperm-webhook", gvk)
		}
	}
	return nil, refusef(http.StatusNotFound, "permissions: there is no kind of%s: upper and lower case count, group= is the core group, and GET /permissions lists all; if the kind was installed just now, try again", wanted)
}

func render(kinds []kindEntry) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Kinds []kindEntry `json:"kinds"`
	}{kinds})
	return b.Bytes(), err
}
