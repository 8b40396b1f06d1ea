package fieldperm

import (
	"fmt"
	"strings"
	"testing"
)

// D8, F2: a manager that owns only items with their keys is charged what it owned, too.
func TestD8_WhoAppliesInTheNameOfAManagerOfKeysHoldsItsVerbs(t *testing.T) {
	k, none := compileGadget(t)
	const item, label = `"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{}}}}`, `"f:metadata":{"f:labels":{"f:team/y":{}}}`
	creator := owner("creator", "Update", `{"f:metadata":{"f:labels":{".":{},"f:a/x":{}}}}`)
	of := func(more, bot string) string {
		return owned(`,"labels":{"a/x":"1"`+more+`}|,"spec":{"containers":[{"name":"c"}]}`, creator, owner("bot", "Apply", bot))
	}
	expectDiff(t, k, none, of("", "{"+item+"}"), of(`,"team/y":"1"`, "{"+label+","+item+"}"),
		`added .metadata.labels["team/y"]: * metadata labels label label(team)`,
		`ownership .spec.containers[name="c"]: * specification container container(c)`)
}

// D8: a write by the name of ancient-changes is no merge, however many managers there are. ancient-changes owns the annotation of kubectl apply, so that
// the first server-side apply of kubectl removes the label of the request, and with it the label that no manager owns.
func TestD8_AWriteInTheNameOfTheBucketIsNoMerge(t *testing.T) {
	k, none := compileGadget(t)
	const note, other = `"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}`, `"f:generateName":{}`
	of := func(label string, owners ...string) string {
		return owned(fmt.Sprintf(`,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"},"labels":{"policy/x":"1","x.io/k":%q}|`, label), owners...)
	}
	entry := func(manager string, fields ...string) string {
		return owner(manager, "Update", `{"f:metadata":{`+strings.Join(fields, ",")+`}}`)
	}
	for _, more := range []int{3, 8, 9, 10} {
		var many []string
		for i := range more {
			many = append(many, entry(fmt.Sprintf("m%d", i), other))
		}
		t.Run(fmt.Sprintf("beside %d managers", more), func(t *testing.T) {
			expectDiff(t, k, none, of("1", append([]string{entry("ancient-changes", note)}, many...)...),
				of("2", append([]string{entry("ancient-changes", note, `"f:labels":{"f:x.io/k":{}}`)}, many...)...),
				`modified .metadata.labels["x.io/k"]: * metadata labels label label(x.io)`, `ownership .metadata.labels["policy/x"]: * metadata labels label label(policy)`)
		})
	}
}
