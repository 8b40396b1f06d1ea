package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Documents returns the documents of a file as JSON, without those that are empty or hold comments only. On
// an error it returns those before it; the error says which document is at fault, counting from 1,
// and does not name the file.
func Documents(raw []byte) ([]json.RawMessage, error) {
	if !utf8.Valid(raw) {
		// A decoder would put a replacement character there, and so another value.
		return nil, errors.New("is not UTF-8: correct its encoding")
	}
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return yamlDocuments(raw)
	}
	// YAML may begin with a brace too, but one JSON document behind another is no YAML.
	out, err := jsonDocuments(raw)
	if err != nil {
		if other, otherErr := yamlDocuments(raw); otherErr == nil {
			return other, nil
		}
	}
	return out, err
}

func jsonDocuments(raw []byte) ([]json.RawMessage, error) {
	var out []json.RawMessage
	stream := json.NewDecoder(bytes.NewReader(raw))
	for {
		var document json.RawMessage
		if err := stream.Decode(&document); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return out, fmt.Errorf("document %d is no JSON: %w: correct it", len(out)+1, err)
		}
		out = append(out, document)
	}
}

func yamlDocuments(raw []byte) ([]json.RawMessage, error) {
	var out []json.RawMessage
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil {
			err = whole(document)
		}
		if err == nil {
			document, err = yaml.YAMLToJSONStrict(document)
		}
		if err != nil {
			return out, fmt.Errorf("document %d is no YAML: %w: correct it", len(out)+1, err)
		}
		if string(document) != "null" {
			out = append(out, document)
		}
	}
}

// whole refuses text behind the end of a document ("{a: 1} {b: 2}"), which the conversion to JSON
// would drop without a word.
func whole(document []byte) error {
	var node yamlv3.Node
	decoder := yamlv3.NewDecoder(bytes.NewReader(document))
	if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if err := decoder.Decode(&node); err == nil {
		return errors.New("something follows its end")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
