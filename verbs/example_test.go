package verbs_test

import (
	"fmt"

	"github.com/fieldperm/fieldperm/verbs"
)

func ExampleParse() {
	verb, err := verbs.Parse("granular:image(web)")
	if err != nil {
		fmt.Println(err)
		return
	}
	parameter, _ := verb.Parameter()
	fmt.Println(verb.Name(), parameter)
	fmt.Println("more general:", verb.WithoutParameter())

	// The error names the correct spelling.
	_, err = verbs.Parse("granular:Image")
	fmt.Println(err)
	// Output:
	// image web
	// more general: granular:image
	// verb "granular:Image": verb "Image" is not lowerCamelCase: use "image"
}

func ExampleVerb_WithParameter() {
	label, err := verbs.New("label")
	if err != nil {
		fmt.Println(err)
		return
	}
	// Characters that would be ambiguous in a verb are percent-encoded.
	verb, ok := label.WithParameter("team (red)")
	fmt.Println(verb, ok)

	// A verb cannot have an empty parameter. Only more general verbs cover such a value.
	_, ok = label.WithParameter("")
	fmt.Println(ok)
	// Output:
	// granular:label(team%20%28red%29) true
	// false
}
