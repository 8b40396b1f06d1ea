package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// row counts the requests to one endpoint.
type row struct {
	writes, allowed, refused, failed, stored, fields int
	hindered                                         map[string]int
}

// table has the results that are reported at the end. Several goroutines may use it.
type table struct {
	mu        sync.Mutex
	rows      map[string]*row
	byServer  map[string]int
	unowned   map[string]int
	unknown   map[string]int
	errors    map[string]int
	mistakes  map[string]int
	methods   map[string]int
	users     map[string]int
	guards    map[string]int
	tolerated map[string]int
	questions map[string]int
	steps     map[string]int
	failures  []*Failure
	writes    int
	ended     bool
}

// Failure is a request that made a change without permission.
type Failure struct {
	Seed uint64
	// Writes is how many writes had been sent.
	Writes  int
	Request *Request
	Answer  *Answer
	Verdict *Verdict
	// Guards are the schemas and sets in force, and the definition.
	Guards []string
	// Small is the smallest request that still failed, nil if the failure did not occur again. Tries is the number of requests that were
	// sent to find it.
	Small *Failure
	Tries int
}

func (f *Failure) String() string {
	out := fmt.Sprintf("seed %d, after %d writes: ", f.Seed, f.Writes)
	if f.Small == nil {
		out += "it was not seen again on the same object\n" + f.what()
	} else {
		// A smaller request may fail for another reason: both failures are shown.
		out += fmt.Sprintf("the smallest of %d that still failed:\n%s\nas it was found:\n%s", f.Small.Tries, f.Small.what(), f.what())
	}
	u, p := f.Request.User, f.Request.Endpoint.Place
	out += fmt.Sprintf("\n  holds  on %s: %v", p, u.Grants(p))
	if p.Sub != "" {
		out += fmt.Sprintf("; on %s: %v", p.Main(), u.Grants(p.Main()))
	}
	return out + "\n  in force " + strings.Join(f.Guards, "\n           ")
}

func (f *Failure) what() string {
	return fmt.Sprintf("%s\n  sent   %s\n  answer %d %s", f.Verdict, f.Request, f.Answer.Code, f.Answer.Status.Message)
}

func newTable() *table {
	return &table{
		rows: map[string]*row{}, byServer: map[string]int{}, unowned: map[string]int{}, unknown: map[string]int{}, errors: map[string]int{},
		mistakes: map[string]int{}, methods: map[string]int{}, users: map[string]int{}, guards: map[string]int{}, tolerated: map[string]int{}, questions: map[string]int{}, steps: map[string]int{},
	}
}

func (t *table) row(e *Endpoint) *row {
	name := t.label(e)
	if t.rows[name] == nil {
		t.rows[name] = &row{hindered: map[string]int{}}
	}
	return t.rows[name]
}

// label is the endpoint's name; drawn definitions share rows.
func (t *table) label(e *Endpoint) string {
	if strings.HasSuffix(e.Group, drawnGroup) {
		sub := ""
		if e.Sub != "" {
			sub = "/" + e.Sub
		}
		return "(drawn definitions)/" + e.Version + sub
	}
	return e.String()
}

func (t *table) know(e *Endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row(e)
}

// hinder counts an endpoint to which no write could be sent.
func (t *table) hinder(e *Endpoint, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row(e).hindered[short(err.Error())]++
}

func short(s string) string { return s[:min(len(s), 200)] }

func (t *table) count(r *Request, a *Answer, events []*Event, fields int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.row(r.Endpoint)
	t.writes++
	one.writes++
	t.methods[string(r.Method)]++
	switch {
	case a.OK():
		one.allowed++
		t.users[r.User.Sort+": allowed"]++
	case a.Refused():
		one.refused++
		t.users[r.User.Sort+": refused"]++
	default:
		one.failed++
		if a.Code >= 500 {
			t.errors[fmt.Sprintf("%d %s: %s", a.Code, r.Endpoint, short(a.Status.Message))]++
		}
	}
	if len(events) > 0 {
		one.stored++
	}
	one.fields += fields
}

func (t *table) background(reason string) { t.add(t.byServer, reason) }

// outside receives the events whose keys belong to no shard.
func (t *table) outside(e *Event) {
	if reason, ok := explain(e); ok {
		t.add(t.unowned, reason)
		return
	}
	raw := e.New
	if raw == nil {
		raw = e.Old
	}
	t.add(t.unknown, e.Key+" "+short(string(raw)))
}

func (t *table) unjudged(e *Event, err error) { t.add(t.mistakes, e.Key+": "+short(err.Error())) }

// strange receives the faults that make the run fail without belonging to a key.
func (t *table) strange(what string) { t.add(t.mistakes, short(what)) }

// asked counts the reviews of /admit.
func (t *table) asked(said []asked) {
	for _, a := range said {
		t.add(t.questions, fmt.Sprintf("%s: allowed %t", a.Path, a.Allowed))
	}
}

func (t *table) add(to map[string]int, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to[key]++
}

// fail keeps a failure, unless there are enough.
func (t *table) fail(f *Failure, most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.failures) >= most {
		return false
	}
	f.Writes = t.writes
	t.failures = append(t.failures, f)
	return true
}

// enough reports whether the run has found enough failures.
func (t *table) enough(config Config) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended || len(t.failures) >= config.MaxFound
}

// end ends the run.
func (t *table) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}

func (t *table) sum() (all row, endpoints int) {
	for _, r := range t.rows {
		all.writes += r.writes
		all.allowed += r.allowed
		all.refused += r.refused
		all.failed += r.failed
		all.fields += r.fields
		if r.writes > 0 {
			endpoints++
		}
	}
	return all, endpoints
}

func (t *table) progress(begin time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, endpoints := t.sum()
	took := time.Since(begin)
	return fmt.Sprintf("%6s: %d writes (%.0f a second), %d allowed, %d refused, %d failed, %d fields, %d endpoints, %d not permitted, %d not judged",
		took.Round(time.Second), all.writes, float64(all.writes)/took.Seconds(), all.allowed, all.refused, all.failed, all.fields, endpoints, len(t.failures), len(t.mistakes)+len(t.unknown))
}

// Report is the result of a run.
type Report struct {
	Text     string
	Last     string
	Failures []*Failure
	// Unjudged are keys that the oracle cannot explain, and objects that it could not decode.
	Unjudged []string
}

func (t *table) report(_ *world) *Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%-86s %7s %7s %7s %7s %7s %7s\n", "endpoint", "writes", "allowed", "refused", "failed", "stored", "fields")
	for _, name := range slices.Sorted(maps.Keys(t.rows)) {
		r := t.rows[name]
		fmt.Fprintf(&b, "%-86s %7d %7d %7d %7d %7d %7d\n", name, r.writes, r.allowed, r.refused, r.failed, r.stored, r.fields)
		for _, why := range most(r.hindered) {
			fmt.Fprintf(&b, "    not written: %s\n", why)
		}
	}
	var idle []string
	for _, name := range slices.Sorted(maps.Keys(t.rows)) {
		if t.rows[name].stored == 0 {
			idle = append(idle, name)
		}
	}
	if len(idle) > 0 {
		fmt.Fprintf(&b, "nothing was stored through: %s\n", strings.Join(idle, ", "))
	}
	for _, part := range []struct {
		title string
		rows  map[string]int
	}{
		{"methods", t.methods}, {"users", t.users}, {"written by the server itself, not charged", t.byServer}, {"keys without an owner, explained", t.unowned},
		{"schemas and sets", t.guards}, {"questions to fieldperm", t.questions}, {"second steps", t.steps}, {"known and documented, not counted as not permitted", t.tolerated}, {"answers of 500 and above", t.errors}, {"KEYS THAT NOTHING EXPLAINS", t.unknown}, {"NOT JUDGED", t.mistakes},
	} {
		if len(part.rows) > 0 {
			fmt.Fprintf(&b, "%s:\n", part.title)
			for _, line := range most(part.rows) {
				fmt.Fprintf(&b, "    %s\n", line)
			}
		}
	}
	out := &Report{Failures: t.failures}
	out.Text = b.String()
	out.Unjudged = slices.Concat(most(t.unknown), most(t.mistakes))
	all, endpoints := t.sum()
	out.Last = fmt.Sprintf("oracle: %d writes, %d allowed, %d refused, %d fields changed, %d endpoints, %d not permitted", all.writes, all.allowed, all.refused, all.fields, endpoints, len(t.failures))
	return out
}

func most(m map[string]int) []string {
	var out []string
	for _, k := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], strings.Compare(a, b)) }) {
		out = append(out, fmt.Sprintf("%6d %s", m[k], k))
	}
	return out[:min(len(out), 25)]
}
