package edit

import (
	"errors"
	"go/scanner"
	"go/token"
	"strings"
)

// piece is a token and the bytes that it takes in its text.
type piece struct {
	token      token.Token
	text       string
	start, end int
}

// scan returns the tokens of a text, with the semicolons that line breaks stand for.
func scan(text []byte) ([]piece, error) {
	var errs scanner.ErrorList
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, errs.Add, 0)
	var out []piece
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		start := file.Offset(pos)
		p := piece{token: tok, text: literal, start: start, end: start + len(literal)}
		if tok.IsOperator() && tok != token.SEMICOLON {
			p.text, p.end = tok.String(), start+len(tok.String())
		}
		out = append(out, p)
	}
	if len(errs) > 0 {
		return nil, errors.New(errs[0].Msg)
	}
	return out, nil
}

// written returns the pieces without the semicolons that line breaks stand for.
func written(pieces []piece) []piece {
	var out []piece
	for _, p := range pieces {
		if p.token != token.SEMICOLON || p.text == ";" {
			out = append(out, p)
		}
	}
	return out
}

// same says whether two texts have the same tokens.
func same(a, b []piece) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].token != b[i].token || a[i].text != b[i].text {
			return false
		}
	}
	return true
}

// pattern returns where it matches in the pieces of a declaration.
type pattern func(pieces []piece) []span

type span struct{ start, end int }

// sequence matches tokens that follow each other.
func sequence(from []piece) pattern {
	return func(pieces []piece) []span {
		var out []span
		for i := range len(pieces) - len(from) + 1 {
			if same(pieces[i:i+len(from)], from) {
				out = append(out, span{pieces[i].start, pieces[i+len(from)-1].end})
			}
		}
		return out
	}
}

// inLiteral matches a text within a string literal.
func inLiteral(from string) pattern {
	return func(pieces []piece) []span {
		var out []span
		for _, p := range pieces {
			if p.token != token.STRING {
				continue
			}
			for at := 0; ; at++ {
				next := strings.Index(p.text[at:], from)
				if next < 0 {
					break
				}
				at += next
				out = append(out, span{p.start + at, p.start + at + len(from)})
			}
		}
		return out
	}
}
