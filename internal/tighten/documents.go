package tighten

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// documents reads indented JSON: events, EventLists, or a list of them. Only one event is in memory. Lines are then numbers of events.
func (l *Log) documents(ctx context.Context, r io.Reader) error {
	d := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true))
	for {
		var err error
		switch d.PeekKind() {
		case '{':
			err = l.document(ctx, d)
		case '[':
			err = l.items(ctx, d)
		default:
			// The end, a fault, or a value that is no event.
			if err = d.SkipValue(); err == nil {
				l.Counts.Lines++
				l.Counts.Broken++
			}
		}
		var syntax *jsontext.SyntacticError
		switch {
		case err == nil:
		case errors.Is(err, io.ErrUnexpectedEOF):
			l.Counts.Truncated = true
			return nil
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &syntax):
			// Where the next document begins is not known.
			l.Counts.Broken++
			return nil
		default:
			return err
		}
	}
}

// document reads an object: the items of a list one by one, or else the whole as an event.
func (l *Log) document(ctx context.Context, d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	event, list := []byte("{"), false
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return err
		}
		if bytes.Equal(name, []byte(`"items"`)) && d.PeekKind() == '[' {
			list = true
			if err := l.items(ctx, d); err != nil {
				return err
			}
			continue
		}
		event = append(append(event, name...), ':')
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if len(event)+len(value) > maxLine {
			l.Counts.TooLong++
			return io.EOF
		}
		event = append(append(event, value...), ',')
	}
	if _, err := d.ReadToken(); err != nil || list {
		return err
	}
	l.Counts.Lines++
	l.text(append(bytes.TrimSuffix(event, []byte(",")), '}'))
	return nil
}

func (l *Log) items(ctx context.Context, d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		l.Counts.Lines++
		if l.Counts.Lines%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		l.text(value)
	}
	_, err := d.ReadToken()
	return err
}

func (l *Log) text(event []byte) {
	document, err := rawjson.Scan(event)
	if err != nil {
		l.Counts.Broken++
		return
	}
	l.value(document.Root())
	document.Release()
}
