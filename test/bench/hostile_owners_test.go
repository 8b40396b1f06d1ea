package bench

import (
	"fmt"
	"strings"
)

// entry is one entry of managedFields.
func entry(name, minute, fields string) string {
	return fmt.Sprintf(`{"manager":"%s","operation":"Apply","apiVersion":"example.com/v1","time":"2026-01-01T08:%s:00Z","fieldsType":"FieldsV1","fieldsV1":%s}`, name, minute, fields)
}

// heldBy is a trial with the given entries in managedFields.
func heldBy(entries, spec string) string { return trial(`,"managedFields":[`+entries+"]", spec) }

// owners are cases with managedFields (D8).
func owners() []hostile {
	manager := func(minute string) func(int) string {
		return func(i int) string {
			return entry(fmt.Sprintf("manager-%d", i), minute, fmt.Sprintf(`{"f:spec":{"f:free":{"f:x%d":{}}}}`, i))
		}
	}
	path := func(i int) string { return fmt.Sprintf(`"f:key%d":{}`, i) }
	value := func(i int) string { return fmt.Sprintf(`"key%d":"1"`, i) }
	ordered := func(i int) string { return fmt.Sprintf(`"k%06d":"1"`, i) }
	orderedPath := func(i int) string { return fmt.Sprintf(`"f:k%06d":{}`, i) }
	entries := func(paths string) string { return `{"f:spec":{"f:entries":{` + paths + `}}}` }
	item := func(i int) string { return fmt.Sprintf(`{"name":"%d","note":"n"}`, i) }
	itemPath := func(i int) string { return fmt.Sprintf(`"k:{\"name\":\"%d\"}":{".":{},"f:name":{},"f:note":{}}`, i) }
	items := func(paths string) string { return `{"f:spec":{"f:items":{` + paths + `}}}` }
	// The charges are the object, and its two barriers.
	whole := func(int) int { return 3 }
	return []hostile{
		{name: "managers", n: 2_500, changes: one, make: func(n int) (string, string) {
			return heldBy(listed(n, manager("00")), `"free":{"x0":1}`), heldBy(manager("01")(0)+","+listed(n-1, func(i int) string { return manager("00")(i + 1) }), `"free":{"x0":2}`)
		}},
		{name: "managers-reversed", n: 2_500, changes: none, make: func(n int) (string, string) {
			return heldBy(listed(n, manager("00")), ""), heldBy(reversed(n, manager("00")), "")
		}},
		{name: "managers-touched", n: 2_500, denied: true, changes: whole, make: func(n int) (string, string) {
			return heldBy(listed(n, manager("00")), ""), heldBy(listed(n, manager("01")), "")
		}},
		{name: "managers-of-one-name", n: 2_500, denied: true, changes: whole, make: func(n int) (string, string) {
			same := func(i int) string { return entry("one", "00", fmt.Sprintf(`{"f:spec":{"f:free":{"f:x%d":{}}}}`, i)) }
			return heldBy(listed(n, same), ""), heldBy(reversed(n, same), "")
		}},
		{name: "managers-of-many-versions", n: 250, denied: true, changes: whole, make: func(n int) (string, string) {
			version := func(letter string) func(int) string {
				return func(i int) string {
					return strings.Replace(entry("one", "00", fmt.Sprintf(`{"f:spec":{"f:free":{"f:x%d":{}}}}`, i)), "/v1", fmt.Sprintf("/%s%d", letter, i+1), 1)
				}
			}
			return heldBy(listed(n, version("v")), ""), heldBy(listed(n, version("w")), "")
		}},
		// An API server merges the oldest managers if there are too many. That is free.
		{name: "managers-merged", n: 2_500, changes: none, make: func(n int) (string, string) {
			updater := func(i int) string {
				return strings.Replace(entry(fmt.Sprintf("manager-%d", i), "00", entries(path(i))), "Apply", "Update", 1)
			}
			kept := func(i int) string { return updater(n - 9 + i) }
			ancient := strings.Replace(entry("ancient-changes", "00", entries(listed(n-9, path))), "Apply", "Update", 1)
			spec := `"entries":{` + listed(n, value) + "}"
			return heldBy(listed(n, updater), spec), heldBy(ancient+","+listed(9, kept), spec)
		}},
		{name: "owner-changes", n: 500, changes: each, make: func(n int) (string, string) {
			spec := `"entries":{` + listed(n, value) + "}"
			return heldBy(entry("me", "00", entries(listed(n, path))), spec), heldBy(entry("you", "00", entries(listed(n, path))), spec)
		}},
		// An API server writes paths in order; other clients need not.
		{name: "owner-changes-reversed", n: 500, changes: each, make: func(n int) (string, string) {
			spec := `"entries":{` + listed(n, ordered) + "}"
			return heldBy(entry("me", "00", entries(reversed(n, orderedPath))), spec), heldBy(entry("you", "00", entries(reversed(n, orderedPath))), spec)
		}},
		// The spec is empty and has no owner: it counts once.
		{name: "owner-changes-nowhere", n: 500, changes: func(n int) int { return 2*n + 1 }, make: func(n int) (string, string) {
			other := func(i int) string { return fmt.Sprintf(`"f:other%d":{}`, i) }
			return heldBy(entry("me", "00", entries(listed(n, path))), ""), heldBy(entry("me", "00", entries(listed(n, other))), "")
		}},
		// The object is searched for each path, and its only name there is long and escaped.
		{name: "owner-changes-beside-a-long-name", n: 500, changes: func(n int) int { return n + 2 }, make: func(n int) (string, string) {
			spec := `"entries":{"` + strings.Repeat(`\u003c`, n) + `":"1"}`
			return heldBy(entry("me", "00", entries("")), spec), heldBy(entry("me", "00", entries(listed(n, path))), spec)
		}},
		{name: "owner-of-items-changes", n: 125, changes: func(n int) int { return 3 * n }, make: func(n int) (string, string) {
			spec := `"items":[` + listed(n, item) + "]"
			return heldBy(entry("me", "00", items(listed(n, itemPath))), spec), heldBy(entry("you", "00", items(listed(n, itemPath))), spec)
		}},
		// One field is applied, and the fields around it have no owner.
		{name: "owner-among-the-unowned", n: 1_000, changes: func(n int) int { return n + 1 }, make: func(n int) (string, string) {
			spec := `"entries":{` + listed(n, value) + "}"
			return heldBy("", spec), heldBy(entry("me", "00", entries(`"f:new":{}`)), strings.Replace(spec, "{", `{"new":"1",`, 1))
		}},
		// The unowned fields are below a long name.
		{name: "owner-below-a-long-name", n: 1_000, changes: func(int) int { return 2 }, make: func(n int) (string, string) {
			name := strings.Repeat("x", 120*n)
			spec := `"groups":{"` + name + `":{` + listed(n, value) + "}}"
			return heldBy("", spec), heldBy(entry("me", "00", `{"f:spec":{"f:groups":{"f:`+name+`":{".":{},"f:new":{}}}}}`), strings.Replace(spec, `"key0"`, `"new":"1","key0"`, 1))
		}},
		{name: "owner-among-unowned-items", n: 300, changes: func(n int) int { return n + 1 }, make: func(n int) (string, string) {
			list := listed(n, item)
			return heldBy("", `"items":[`+list+"]"), heldBy(entry("me", "00", items(`"k:{\"name\":\"new\"}":{".":{},"f:name":{}}`)), `"items":[{"name":"new"},`+list+"]")
		}},
		// Every manager has the own entry of a container inside another's, with a barrier somewhere.
		{name: "owners-of-nested-containers", n: 100, changes: func(n int) int { return n }, make: func(n int) (string, string) {
			spec := `"free":` + within(n, `"a":`, "1", "")
			own := func(depth int) string {
				return `{"f:spec":{"f:free":` + strings.Repeat(`{"f:a":`, depth) + "{}" + strings.Repeat("}", depth) + "}}"
			}
			return heldBy(listed(n, func(i int) string {
				return strings.Replace(entry(fmt.Sprintf("manager-%d", i), "00", own(n-i)), "Apply", "Update", 1)
			}), spec), heldBy("", spec)
		}},
		{name: "owner-of-depth-changes", n: 200, changes: func(int) int { return 2 }, make: func(n int) (string, string) {
			spec := `"free":` + within(n, `"a":`, "1", "")
			deep := `{"f:spec":{"f:free":` + strings.Repeat(`{"f:a":`, n) + "{}" + strings.Repeat("}", n) + "}}"
			return heldBy(entry("me", "00", deep), spec), heldBy(entry("you", "00", deep), spec)
		}},
		// Each owner gains another owner's key, in a container of 400 bytes a key with a condition over all of it.
		{name: "owners-under-a-condition", n: 500, denied: true, changes: func(n int) int { return n + 3 }, make: func(n int) (string, string) {
			sealed := func(next int) func(int) string {
				return func(i int) string {
					return entry(fmt.Sprintf("manager-%d", i), "00", fmt.Sprintf(`{"f:spec":{"f:sealed":{"f:key%d":{}}}}`, (i+next)%n))
				}
			}
			spec := `"sealed":{` + listed(n, func(i int) string { return fmt.Sprintf(`"key%d":"%s"`, i, strings.Repeat("x", 400)) }) + "}"
			return heldBy(listed(n, sealed(0)), spec), heldBy(listed(n, sealed(1)), spec)
		}},
	}
}
