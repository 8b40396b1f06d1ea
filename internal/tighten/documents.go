package tighten

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// documents reads JSON in any form: events, EventLists, or a list of them. Of one event only what is needed is in memory, not the objects in
// it. Lines are then numbers of events.
func (l *Log) documents(ctx context.Context, r io.Reader) error {
	d := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
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
				l.count()
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
	event, list, tooLong := []byte("{"), false, false
	for d.PeekKind() != '}' {
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		name := string(value)
		switch kind := d.PeekKind(); {
		case name == `"items"` && kind == '[':
			list = true
			if err := l.items(ctx, d); err != nil {
				return err
			}
			continue
		case name == `"requestObject"`, name == `"responseObject"`:
			if err := d.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if value, err = d.ReadValue(); err != nil {
			return err
		}
		if tooLong = tooLong || len(event)+len(name)+len(value) > maxEvent; !tooLong {
			event = append(append(append(append(event, name...), ':'), value...), ',')
		}
	}
	if _, err := d.ReadToken(); err != nil || list {
		return err
	}
	l.count()
	if l.Counts.Lines%4096 == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	if tooLong {
		l.Counts.TooLong++
		return nil
	}
	l.text(append(bytes.TrimSuffix(event, []byte(",")), '}'))
	return nil
}

func (l *Log) items(ctx context.Context, d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		if d.PeekKind() == '{' {
			if err := l.document(ctx, d); err != nil {
				return err
			}
			continue
		}
		if err := d.SkipValue(); err != nil {
			return err
		}
		l.count()
		l.Counts.Broken++
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
