package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// hostile is input that an attacker made to take long.
type hostile struct {
	name string
	// n is the smallest size; the others are twice and four times as large.
	n int
	// user is "owner" by default, a user with all verbs except those of barriers.
	user   string
	denied bool
	// changes is the number of requirements that Diff returns.
	changes func(n int) int
	// make returns the two objects.
	make func(n int) (old, object string)
}

// These functions return numbers of changes.
func none(int) int   { return 0 }
func one(int) int    { return 1 }
func each(n int) int { return n }

// whole is the number of changes of an irregular object: the root and two barriers.
func whole(int) int { return 3 }

// trial is a Trial with the given additional members of metadata and members of spec.
func trial(metadata, spec string) string {
	return `{"apiVersion":"example.com/v1","kind":"Trial","metadata":{"name":"one","namespace":"shop"` + metadata + `},"spec":{` + spec + `}}`
}

// listed joins the results of item for the numbers below n.
func listed(n int, item func(i int) string) string { return strings.Join(texts(n, item), ",") }

// reversed is the same in reversed order.
func reversed(n int, item func(i int) string) string {
	all := texts(n, item)
	slices.Reverse(all)
	return strings.Join(all, ",")
}

func texts(n int, item func(i int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = item(i)
	}
	return out
}

// within puts a value into n nested objects.
func within(n int, before, value, after string) string {
	return strings.Repeat("{"+before, n) + value + strings.Repeat(after+"}", n)
}

func member(i int) string { return fmt.Sprintf(`"key%d":%d`, i, i) }

// hostileCases lists the cases by topic. 4n fits into the 8 MiB that fieldperm-webhook reads.
func hostileCases() []hostile {
	return slices.Concat(nests(), names(), lists(), texted(), owners(), barriers())
}

// nests are objects of depth n; jsontext refuses more than 10,000.
func nests() []hostile {
	free := func(value string) string { return trial("", `"free":`+value) }
	const n = 2400
	wide := func(order func(int, func(int) string) string) string { return order(20, member) }
	return []hostile{
		{name: "deep", n: n, changes: one, make: func(n int) (string, string) {
			return free(within(n, `"a":`, "1", "")), free(within(n, `"a":`, "2", ""))
		}},
		{name: "deep-every-level", n: n, changes: each, make: func(n int) (string, string) {
			return free(within(n, `"a":`, "1", `,"z":1`)), free(within(n, `"a":`, "1", `,"z":2`))
		}},
		// Members have another order at every level: bytes differ from the top on, values only at the bottom or not at all.
		{name: "deep-reordered", n: n, changes: one, make: func(n int) (string, string) {
			return free(within(n, `"a":`, "1", `,"z":1`)), free(within(n, `"z":1,"a":`, "2", ""))
		}},
		{name: "deep-reordered-equal", n: n, changes: none, make: func(n int) (string, string) {
			return free(within(n, `"a":`, "1", `,"z":1`)), free(within(n, `"z":1,"a":`, "1", ""))
		}},
		{name: "deep-wide-reordered", n: n, changes: one, make: func(n int) (string, string) {
			return free(within(n, wide(listed)+`,"a":`, "1", "")), free(within(n, wide(reversed)+`,"a":`, "2", ""))
		}},
		{name: "deep-wide-reordered-equal", n: n, changes: none, make: func(n int) (string, string) {
			return free(within(n, wide(listed)+`,"a":`, "1", "")), free(within(n, `"a":`, "1", ","+wide(reversed)))
		}},
		// Both have the same length and are equal up to the end: comparing bytes at every level is quadratic.
		{name: "deep-heavy", n: n, changes: one, make: func(n int) (string, string) {
			heavy := `{"p":"` + strings.Repeat("x", 100*n) + `","x":`
			return free(within(n, `"a":`, heavy+"1}", "")), free(within(n, `"a":`, heavy+"2}", ""))
		}},
		{name: "deep-heavy-reordered", n: n, changes: one, make: func(n int) (string, string) {
			heavy := `"p":"` + strings.Repeat("x", 100*n) + `"`
			return free(within(n, `"a":`, "{"+heavy+`,"x":1}`, `,"z":1`)), free(within(n, `"z":1,"a":`, `{"x":2,`+heavy+"}", ""))
		}},
		// Lists of unknown types are atomic, so that their content is compared as a whole.
		{name: "deep-lists-reordered", n: n / 2, changes: one, make: func(n int) (string, string) {
			return free(within(n, `"a":[`, "1", `],"z":1`)), free(within(n, `"z":1,"a":[`, "2", "]"))
		}},
		{name: "deep-lists-reordered-equal", n: n / 2, changes: none, make: func(n int) (string, string) {
			return free(within(n, `"a":[`, "1", `],"z":1`)), free(within(n, `"z":1,"a":[`, "1", "]"))
		}},
		{name: "deep-branches-reordered", n: 100, changes: each, make: func(n int) (string, string) {
			branch := func(before, value, after string) func(int) string {
				return func(i int) string { return fmt.Sprintf(`"branch%d":`, i) + within(500, before, value, after) }
			}
			return free("{" + listed(n, branch(`"a":`, "1", `,"z":1`)) + "}"), free("{" + reversed(n, branch(`"z":1,"a":`, "2", "")) + "}")
		}},
	}
}

// names are cases with names of members.
func names() []hostile {
	free := func(members string) string { return trial("", `"free":{`+members+`}`) }
	same := func(value func(i int) int) func(int) string {
		return func(i int) string { return fmt.Sprintf(`"key":%d`, value(i)) }
	}
	entry := func(value string) func(int) string {
		return func(i int) string { return fmt.Sprintf(`"key%d":"%s"`, i, value) }
	}
	entries := func(n int) (string, string) {
		return trial("", `"entries":{`+listed(n, entry("1"))+"}"), trial("", `"entries":{`+listed(n, entry("2"))+"}")
	}
	long := func(n int) (string, string) {
		key := `"` + strings.Repeat("k", n) + `":`
		return free(key + "1"), free(key + "2")
	}
	return []hostile{
		{name: "huge-key", n: 256 << 10, changes: one, make: long},
		{name: "huge-key-denied", n: 256 << 10, user: "marked", denied: true, changes: one, make: long},
		{name: "duplicate-keys", n: 10_000, denied: true, changes: whole, make: func(n int) (string, string) {
			return free(listed(n, same(func(int) int { return 1 }))), free(listed(n, same(func(i int) int { return 1 + i/(n-1) })))
		}},
		{name: "duplicate-keys-reversed", n: 10_000, denied: true, changes: whole, make: func(n int) (string, string) {
			return free(listed(n, same(func(i int) int { return i }))), free(reversed(n, same(func(i int) int { return i })))
		}},
		{name: "keys-reversed", n: 10_000, changes: none, make: func(n int) (string, string) {
			return free(listed(n, member)), free(reversed(n, member))
		}},
		{name: "keys-replaced", n: 10_000, changes: func(n int) int { return 2 * n }, make: func(n int) (string, string) {
			return free(listed(n, member)), free(listed(n, func(i int) string { return member(n + i) }))
		}},
		// P3 ends it: no check covers more than one change.
		{name: "many-changes", n: 25_000, user: "piecemeal", denied: true, changes: each, make: entries},
		{name: "many-changes-one-verb", n: 25_000, changes: each, make: entries},
		{name: "many-changes-denied", n: 25_000, user: "marked", denied: true, changes: each, make: entries},
	}
}

// lists are cases with long lists. An item with a name is the smallest item.
func lists() []hostile {
	number := func(i int) string { return strconv.Itoa(i % 10) }
	text := func(i int) string { return strconv.Quote(strconv.FormatInt(int64(i), 36)) }
	named := func(i int) string { return fmt.Sprintf(`{"name":"%d"}`, i) }
	shuffled := func(i int) string { return fmt.Sprintf(`{"note":"n","name":"%d","options":{"a":1,"b":2}}`, i) }
	ordered := func(i int) string { return fmt.Sprintf(`{"name":"%d","note":"n","options":{"b":2,"a":1}}`, i) }
	same := func(i int) string { return fmt.Sprintf(`{"name":"one","note":"%d"}`, i) }
	list := func(name, items string) string { return trial("", `"`+name+`":[`+items+"]") }
	return []hostile{
		{name: "atomic-list", n: 250_000, changes: one, make: func(n int) (string, string) {
			return list("numbers", listed(n, number)+",1"), list("numbers", listed(n, number)+",2")
		}},
		{name: "set-reversed", n: 62_500, changes: one, make: func(n int) (string, string) {
			return list("members", listed(n, text)), list("members", reversed(n, text))
		}},
		{name: "set-appears", n: 125_000, changes: each, make: func(n int) (string, string) {
			return list("members", ""), list("members", listed(n, text))
		}},
		{name: "items-reversed", n: 50_000, changes: one, make: func(n int) (string, string) {
			return list("items", listed(n, named)), list("items", reversed(n, named))
		}},
		{name: "items-respelled", n: 15_000, changes: none, make: func(n int) (string, string) {
			return list("items", listed(n, ordered)), list("items", listed(n, shuffled))
		}},
		{name: "items-replaced", n: 50_000, changes: func(n int) int { return 2 * n }, make: func(n int) (string, string) {
			return list("items", listed(n, named)), list("items", listed(n, func(i int) string { return named(n + i) }))
		}},
		{name: "duplicate-items", n: 10_000, changes: one, make: func(n int) (string, string) {
			return list("items", listed(n, same)), list("items", reversed(n, same))
		}},
		{name: "duplicate-items-in-pairs", n: 10_000, changes: one, make: func(n int) (string, string) {
			pair := func(note int) func(int) string {
				return func(i int) string { return fmt.Sprintf(`{"name":"%d","note":"%d"}`, i/2, i%2*note) }
			}
			return list("items", listed(n, pair(1))), list("items", listed(n, pair(2)))
		}},
	}
}

// texted are cases with long scalars, or scalars in another spelling.
func texted() []hostile {
	free := func(value string) string { return trial("", `"free":{"x":`+value+`}`) }
	spelled := func(text string) string { return `"` + text + `"` }
	return []hostile{
		{name: "text", n: 750_000, changes: one, make: func(n int) (string, string) {
			return free(spelled(strings.Repeat("a", n) + "1")), free(spelled(strings.Repeat("a", n) + "2"))
		}},
		{name: "escapes-equal", n: 250_000, changes: none, make: func(n int) (string, string) {
			return free(spelled(strings.Repeat("a", n))), free(spelled(strings.Repeat(`\u0061`, n)))
		}},
		{name: "escapes", n: 150_000, changes: one, make: func(n int) (string, string) {
			return free(spelled(strings.Repeat(`\u0061`, n) + "1")), free(spelled(strings.Repeat(`\u0061`, n) + "2"))
		}},
		{name: "escapes-in-keys", n: 10_000, changes: none, make: func(n int) (string, string) {
			key := func(first string) func(int) string {
				return func(i int) string { return fmt.Sprintf(`"%s%d":1`, first, i) }
			}
			return free("{" + listed(n, key("abcdefgh")) + "}"), free("{" + reversed(n, key(`\u0061\u0062\u0063\u0064efgh`)) + "}")
		}},
		{name: "digits", n: 25_000, changes: one, make: func(n int) (string, string) {
			return free(strings.Repeat("7", n) + "1"), free(strings.Repeat("7", n) + "2")
		}},
		{name: "digits-equal", n: 25_000, changes: none, make: func(n int) (string, string) {
			return free("1" + strings.Repeat("0", n)), free("1e" + strconv.Itoa(n))
		}},
		{name: "exponent", n: 25_000, changes: one, make: func(n int) (string, string) {
			return free("1e" + strings.Repeat("7", n) + "1"), free("1e" + strings.Repeat("7", n) + "2")
		}},
		{name: "exponents-equal", n: 25_000, changes: none, make: func(n int) (string, string) {
			return free("[" + listed(n, func(int) string { return "1e999999999" }) + "]"), free("[" + listed(n, func(int) string { return "10E+999999998" }) + "]")
		}},
	}
}
