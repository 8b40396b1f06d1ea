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

// Documents returns the documents of a file as JSON, without those that are empty or have only comments. On an error it also
// returns the documents before the faulty one. The error names the number of the faulty document, counting from 1, but not the
// file.
func Documents(raw []byte) ([]json.RawMessage, error) {
	if !utf8.Valid(raw) {
		// A decoder would replace the invalid bytes, and so change the value.
		return nil, errors.New("is not UTF-8: correct its encoding")
	}
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return yamlDocuments(raw)
	}
	// YAML may start with a brace too, but several JSON documents in sequence are not YAML.
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

// whole refuses text after the end of a document ("{a: 1} {b: 2}"). The conversion to JSON would drop such text without an error.
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
