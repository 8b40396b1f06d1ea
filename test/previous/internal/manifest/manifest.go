package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// ErrEncoding is the error for a file that is not UTF-8. A decoder would replace the invalid bytes, and so change the value.
var ErrEncoding = errors.New("is not UTF-8: correct its encoding")

// Document is one document of a file.
type Document struct {
	// JSON is the document, nil if Err is set.
	JSON json.RawMessage
	// Text is the document as it is in the file, without the line "---" before it. Line counts the lines of the file before Text.
	Text []byte
	Line int
	// Err is the fault of a YAML document. Its lines are those of the file. Duplicate keys are faults.
	Err error
}

// Documents returns the documents of a file as JSON, without those that are empty or have only comments. A file that starts with a brace
// may be JSON or YAML. On an error it also returns the documents before the faulty one. The error names the number of the faulty document,
// counting from 1, but not the file.
func Documents(raw []byte) ([]json.RawMessage, error) {
	documents, err := Split(raw)
	if errors.Is(err, ErrEncoding) {
		return nil, err
	}
	if err != nil {
		// YAML may start with a brace too, but several JSON documents in sequence are not YAML.
		if other, otherErr := all(splitYAML(raw)); otherErr == nil {
			return other, nil
		}
		out, _ := all(documents)
		return out, fmt.Errorf("document %d is no JSON: %w: correct it", len(out)+1, errors.Unwrap(err))
	}
	return all(documents)
}

// all returns the documents up to the first faulty one. It leaves out null, the value of a document without content.
func all(documents []Document) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for _, d := range documents {
		if d.Err != nil {
			return out, fmt.Errorf("document %d is no YAML: %w: correct it", len(out)+1, d.Err)
		}
		if string(d.JSON) != "null" {
			out = append(out, d.JSON)
		}
	}
	return out, nil
}

// Split returns the documents of a file, without those that are empty or have only comments. A file that starts with a brace is JSON. The
// error is for the whole file: it is ErrEncoding, or the file starts with a brace and is not JSON. That error starts with the line, and
// Split then also returns the documents before the fault.
func Split(raw []byte) ([]Document, error) {
	if !utf8.Valid(raw) {
		return nil, ErrEncoding
	}
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return splitJSON(raw)
	}
	return splitYAML(raw), nil
}

func splitJSON(raw []byte) ([]Document, error) {
	var out []Document
	decoder := json.NewDecoder(bytes.NewReader(raw))
	for {
		var part json.RawMessage
		begin := decoder.InputOffset()
		err := decoder.Decode(&part)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				begin += syntax.Offset
			}
			line := 1 + bytes.Count(raw[:min(begin, int64(len(raw)))], []byte("\n"))
			return out, fmt.Errorf("line %d: %w", line, err)
		}
		text := raw[begin:decoder.InputOffset()]
		out = append(out, Document{JSON: part, Text: text, Line: bytes.Count(raw[:begin], []byte("\n"))})
	}
}

// splitYAML separates documents. A faulty one is read again at its position in the file, with blank lines in place of the text before it, so
// that the line numbers of the YAML library are those of the file. To read each so would take time with the square of the length of the file.
func splitYAML(raw []byte) []Document {
	var out []Document
	var part []byte
	line, begin := 0, 0
	flush := func() {
		if !isBlank(part) {
			document := decode(part)
			if document.Err != nil {
				document = decode(append(bytes.Repeat([]byte("\n"), begin), part...))
			}
			document.Text, document.Line = part, begin
			out = append(out, document)
		}
		part, begin = nil, line
	}
	for text := range bytes.Lines(raw) {
		if rest, ok := bytes.CutPrefix(text, []byte("---")); ok && (len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' || rest[0] == '\t') {
			flush()
			text = append([]byte("   "), rest...)
		}
		part = append(part, text...)
		line++
	}
	flush()
	return out
}

func isBlank(part []byte) bool {
	for text := range bytes.Lines(part) {
		if text = bytes.TrimSpace(text); len(text) > 0 && text[0] != '#' {
			return false
		}
	}
	return true
}

func decode(document []byte) Document {
	out, err := yaml.YAMLToJSONStrict(document)
	if err == nil {
		err = whole(document)
	}
	if err != nil {
		return Document{Err: err}
	}
	return Document{JSON: out}
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
