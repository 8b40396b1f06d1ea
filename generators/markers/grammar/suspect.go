package grammar

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/fieldperm/fieldperm/internal/spelling"
)

// Suspect returns a fault for a line that is probably meant as a permission marker and that Parse does not take for one, with the right
// name where one is near; nil for other lines. A generator must refuse such a line, because a marker that is silently ignored may be a
// barrier.
//
// Suspicious are: after a + a name that starts with permission- or is close to a marker's, with or without words before it and colons
// between; a marker's name without its +, if what follows has the form of a value; and a complete marker that ends a line which starts with
// something else. Prose that mentions a marker is not: with words after it, or between quotes or backquotes.
func Suspect(line string) *Fault {
	if _, found, _ := Parse(line); found {
		return nil
	}
	start := len(line) - len(strings.TrimLeftFunc(line, isDecoration))
	text := line[start:]
	if _, found, _ := Parse(text); found {
		return &Fault{
			End: start, Message: fmt.Sprintf("marker %q stands after %q, so it has no effect: write it after // and a space", text, line[:start]), Fix: " ",
		}
	}
	if m, found, err := Parse("+" + text); found && err == nil && m.Form == OpenAPI {
		return &Fault{Offset: start, End: start, Message: fmt.Sprintf("marker %q has no +: write +%s", text, text), Fix: "+"}
	}
	after, isMarker := strings.CutPrefix(text, "+")
	if !isMarker {
		if f := withoutPlus(line, start); f != nil {
			return f
		}
		return within(line, start, false)
	}
	name := strings.TrimLeftFunc(after, isDecoration)
	if f := misspelt(line, start, len(line)-len(name)); f != nil {
		return f
	}
	if strings.Contains(strings.ToLower(text), strings.TrimSuffix(extensionPrefix, "-")) && !strings.ContainsAny(text, "`\"") {
		return &Fault{Offset: start, End: len(line), Message: fmt.Sprintf("marker %q is unknown: write +%s=%s:VALUE", text, openAPITag, Verb.Extension())}
	}
	return within(line, start, true)
}

// isDecoration reports whether a character before a marker has no meaning of its own: white space, signs of comments, lists and other
// languages' markers, and characters that cannot be seen.
func isDecoration(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("/*#@", r) || unicode.Is(unicode.Cf, r)
}

// misspelt judges what follows a + . The name is at the offset from.
func misspelt(line string, start, from int) *Fault {
	name := line[from:]
	if i := strings.IndexFunc(name, func(r rune) bool { return r == '=' || r == '"' || r == '`' || unicode.IsSpace(r) }); i >= 0 {
		name = name[:i]
	}
	if tag, isTag := openAPIName(line[from:], name); isTag {
		return tag.fault(start, from)
	}
	// The name may stand after a domain or a family (kubebuilder:) or after another marker and a comma, and the value after the name: each
	// part is a candidate.
	offset := from
	for part := range strings.SplitSeq(strings.NewReplacer(",", ":", ";", ":").Replace(name), ":") {
		end := offset + len(part)
		if key, near := nearest(part); near {
			f := &Fault{Offset: start, End: end}
			f.Message, f.Fix = unknown(line[start:end], key, markerPrefix)
			return f
		}
		offset = end + 1
	}
	return nil
}

// openAPITagged is the value of a marker that is or resembles openapi-gen's.
type openAPITagged struct {
	tag, extension string
}

func openAPIName(rest, tag string) (openAPITagged, bool) {
	value, ok := strings.CutPrefix(rest[len(tag):], "=")
	if !ok {
		return openAPITagged{}, false
	}
	t := openAPITagged{tag: tag, extension: word(value)}
	lower := strings.ToLower(t.extension)
	near := closest(lower, extensionPrefix)
	return t, strings.Contains(lower, strings.TrimSuffix(extensionPrefix, "-")) || near != "" && strings.HasPrefix(lower, "x-")
}

func (t openAPITagged) fault(start, from int) *Fault {
	f := &Fault{Offset: start, End: from + len(t.tag) + 1 + len(t.extension)}
	key := closest(strings.ToLower(t.extension), extensionPrefix)
	subject := "+" + t.tag + "=" + t.extension
	f.Message, f.Fix = unknown(subject, key, "+"+openAPITag+"="+extensionPrefix)
	return f
}

// nearest returns the name of the marker that a word means, "" if it is not clear which, and whether it means one at all.
func nearest(part string) (string, bool) {
	plain := strings.TrimPrefix(dashed(part), "x-kubernetes-")
	near := closest(plain, markerPrefix)
	return near, near != "" || strings.HasPrefix(plain, strings.TrimSuffix(markerPrefix, "-"))
}

// closest returns the name that is closest to one in lower case. If the prefix is right, only what follows it counts.
func closest(name, prefix string) string {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return spelling.Nearest(name, names(prefix))
	}
	if near := spelling.Nearest(rest, names("")); near != "" {
		return prefix + near
	}
	return ""
}

// dashed converts permissionVerb, permission_verb and Permission-Verb to permission-verb.
func dashed(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == '_' || r == '.':
			b.WriteByte('-')
		case unicode.IsUpper(r):
			if i > 0 && unicode.IsLower(rune(name[i-1])) {
				b.WriteByte('-')
			}
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unknown returns the message and the correction for a text that means the marker near, which has no + yet.
func unknown(text, near, prefix string) (message, fix string) {
	if near == "" {
		all := names(prefix)
		for i, name := range all {
			all[i] = "+" + strings.TrimPrefix(name, "+")
		}
		return fmt.Sprintf("marker %q is unknown: use one of %s", text, strings.Join(all, ", ")), ""
	}
	fix = near
	if head, _, isTag := strings.Cut(prefix, "="); isTag {
		fix = head + "=" + near
	}
	fix = "+" + strings.TrimPrefix(fix, "+")
	return fmt.Sprintf("marker %q is unknown: write %s", text, fix), fix
}

// withoutPlus judges a line that starts with a name. It needs a value after it, or for +permission-excluded nothing: a line of prose about
// a marker goes on with words.
func withoutPlus(line string, start int) *Fault {
	name := word(line[start:])
	end := start + len(name)
	near := closest(dashed(name), markerPrefix)
	if near == "" {
		return nil
	}
	key := Key(strings.TrimPrefix(near, markerPrefix))
	rest := strings.TrimSpace(line[end:])
	value := strings.TrimSpace(strings.TrimLeft(rest, ":="))
	switch {
	case rest == "":
		if key != Excluded {
			return nil
		}
	case rest[0] != ':' && rest[0] != '=' || value == "":
		return nil
	case key.isExpression() && strings.Contains(value, "self"):
	case quotedWhole(value):
	case strings.ContainsAny(value, " \t"):
		return nil
	}
	f := &Fault{Offset: start, End: end, Fix: "+" + near}
	f.Message = fmt.Sprintf("marker %q has no +: write %s", name, f.Fix)
	return f
}

func quotedWhole(value string) bool {
	return len(value) > 1 && strings.ContainsRune("\"`'", rune(value[0])) && value[len(value)-1] == value[0]
}

// within finds a complete marker that ends the line, or after another marker any.
func within(line string, start int, afterMarker bool) *Fault {
	for from := start; ; {
		i := strings.Index(line[from:], "+")
		if i < 0 {
			return nil
		}
		from += i
		if before := line[:from]; strings.TrimSpace(before) != "" && !openQuote(before) {
			if _, found, err := Parse(line[from:]); found && (err == nil || afterMarker) {
				return &Fault{Offset: from, End: len(line), Message: fmt.Sprintf("marker %q does not start its line, so it has no effect: put it on a line of its own, or between backquotes if it is text", line[from:])}
			}
		}
		from++
	}
}

// openQuote reports whether a quote is open at the end of a text.
func openQuote(text string) bool {
	return strings.Count(text, "`")%2 == 1 || strings.Count(text, `"`)%2 == 1
}
