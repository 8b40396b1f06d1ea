package endpoint

import (
	"encoding/json"
	"fmt"
	"strings"
)

// becomes is the text between the two paths of a Field.
const becomes = " -> "

// MarshalJSON renders the field as one string: ".metadata.labels", ".target.name -> .spec.nodeName".
func (f Field) MarshalJSON() ([]byte, error) {
	if f.To == "" || f.To == f.From {
		return json.Marshal(f.From)
	}
	return json.Marshal(f.From + becomes + f.To)
}

// UnmarshalJSON reads what MarshalJSON renders.
func (f *Field) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	from, to, _ := strings.Cut(text, becomes)
	for _, path := range []string{from, to} {
		if path != "" && path[0] != '.' && path != SpecReplicas {
			return fmt.Errorf("field %q: path %q does not begin with a dot", text, path)
		}
	}
	*f = Field{From: from, To: to}
	return nil
}

// String returns the kind with its group after a dot, as resources are written: "Pod", "Scale.autoscaling".
func (k Kind) String() string {
	if k.Group == "" {
		return k.Kind
	}
	return k.Kind + "." + k.Group
}

// MarshalJSON renders the kind as String does.
func (k Kind) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// UnmarshalJSON reads what MarshalJSON renders.
func (k *Kind) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	k.Kind, k.Group, _ = strings.Cut(text, ".")
	return nil
}
