package bench

import "fmt"

// barriers are cases with guarded fields inside a value that is charged as a whole (D2, D4).
func barriers() []hostile {
	stage := func(privileged bool) func(int) string {
		return func(i int) string { return fmt.Sprintf(`{"name":"%d","privileged":%t}`, i, privileged) }
	}
	alternating := func(i int) string { return stage(i%2 == 0)(i) }
	stages := func(items string) string { return trial("", `"stages":[`+items+"]") }
	flipped := func(n int) (string, string) { return stages(listed(n, stage(false))), stages(listed(n, stage(true))) }
	return []hostile{
		{name: "barriers", n: 10_000, user: "guard", changes: func(n int) int { return n + 1 }, make: flipped},
		{name: "barriers-denied", n: 10_000, denied: true, changes: func(n int) int { return n + 1 }, make: flipped},
		{name: "barriers-reversed", n: 10_000, user: "guard", changes: func(n int) int { return n + 1 }, make: func(n int) (string, string) {
			return stages(listed(n, alternating)), stages(reversed(n, alternating))
		}},
		{name: "barrier-duplicated", n: 10_000, user: "guard", denied: true, changes: whole, make: func(n int) (string, string) {
			same := func(value bool) string {
				return "{" + listed(n, func(int) string { return fmt.Sprintf(`"privileged":%t`, value) }) + "}"
			}
			return stages(same(false)), stages(same(true))
		}},
		{name: "barrier-beside-depth", n: 2_400, user: "guard", changes: func(int) int { return 2 }, make: func(n int) (string, string) {
			return stages(`{"privileged":false,"options":` + within(n, `"a":`, "1", `,"z":1`) + "}"), stages(`{"options":` + within(n, `"z":1,"a":`, "2", "") + `,"privileged":true}`)
		}},
		{name: "barriers-beside-respelled", n: 5_000, user: "guard", changes: one, make: func(n int) (string, string) {
			before := func(i int) string { return fmt.Sprintf(`{"name":"%d","privileged":true,"options":{"a":1,"b":2}}`, i) }
			after := func(i int) string { return fmt.Sprintf(`{"options":{"b":2,"a":1},"privileged":true,"name":"%d"}`, i) }
			return stages(listed(n, before) + `,{"name":"last"}`), stages(listed(n, after) + `,{"name":"end"}`)
		}},
	}
}
