// Package places has a marker at every place where one can stand.
// +permission-verb:"packageClause"
package places

// +permission-verb:"detachedBeforeImports"

import (
	// +permission-verb:"import"
	"fmt"
)

// +permission-verb:"detachedBeforeType"

// +permission-verb:"closestBeforeType"

// Good is documented, and has markers in the documentation and in the comment before it.
// +permission-parameter-source:"good"
type Good struct {
	// +permission-verb:"closestBeforeField"

	// Color is documented.
	// +permission-parameterized-by:"good"
	Color string `json:"color,omitempty"` // +permission-verb:"behindTheField"
	//+permission-verb=noSpace
	Size int `json:"size"`
	// +permission-verb:"number"
	// +k8s:openapi-gen=x-kubernetes-permission-verb:number
	BothForms int `json:"bothForms"`

	// +permission-verb:"one"
	// +permission-verb:"two"
	Twice int `json:"twice"`
	// +permission-verb:"unexported"
	hidden int `json:"hidden"`
	// +permission-verb:"noTag"
	NoTag int
	// +permission-verb:"dash"
	Dash int `json:"-"`
	// +permission-verb:"namedDash"
	NamedDash int `json:"-,"`
	// +permission-verb:"shared"
	A, B int `json:"ab"`
	// +permission-verb:"inline"
	Inlined `json:",inline"`
	// +permission-verb:"embedded"
	Embedded `json:"embedded"`
	// +permission-verb:"untagged"
	Untagged
	// +permission-verb:"anonymous"
	Anonymous struct {
		// +permission-verb:"inAnonymous"
		X int `json:"x"`
	} `json:"anonymous"`
	/* +permission-verb:"inABlock" */
	Block int `json:"block"`
	/*
	 * The block.
	 * +permission-verb:"inALongBlock"
	 */
	LongBlock int `json:"longBlock"`
	// +permission-verb:"lastInStruct"
} // +permission-verb:"behindTheType"

type (
	// Inlined is in a group.
	// +permission-excluded
	Inlined struct {
		// +permission-excluded-when: self == true || oldSelf == 'a'
		Y bool `json:"y"`
	}
	// +permission-verb:"basic"
	Embedded string // +permission-verb:"behindTheGroupedType"
	// +permission-verb:"endOfGroup"
)

// +permission-verb:"group"
type (
	Untagged struct{}
	Method   interface {
		// +permission-verb:"method"
		Do()
	}
)

// A prose line may mention +permission-verb, or `+permission-verb:"x"`.
// +permision-verb:"misspelt"
// +permission-verbs:"misspelt"
// permission-verb:"noPlus"
// +permission-verb:"Color"
// +permission-verb:"granular:color"
// +permission-parameter-treatment:slash-delimited-prefixes
// +permission-parameter-expression:
type Misspelt string

// +permission-verb:"constant"
const Constant = "+permission-verb:x"

var variable = fmt.Sprint( // +permission-verb:"variable"
	hidden())

// +permission-verb:"function"
func hidden() string {
	// +permission-verb:"body"
	type local struct {
		// +permission-verb:"local"
		Z int `json:"z"`
	}
	return fmt.Sprint(variable, local{}, Good{}.hidden)
}

// Alias has markers too.
// +permission-verb:"alias"
type Alias = Good

// +permission-verb:"end"
