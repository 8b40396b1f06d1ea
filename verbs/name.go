package verbs

import (
	"fmt"
	"strings"
)

// maxDomainLength and maxLabelLength are the limits of a DNS subdomain (RFC 1123), in bytes.
const (
	maxDomainLength = 253
	maxLabelLength  = 63
	maxNameLength   = 63
)

// ValidateName returns an error if name is not [domain "/"] lowerCamelCase. The error names the cure.
func ValidateName(name string) error {
	if rest, granted := strings.CutPrefix(name, Prefix); granted {
		if ValidateName(rest) != nil {
			return fmt.Errorf("verb %q has the prefix of granted verbs: use a noun in lowerCamelCase", name)
		}
		return fmt.Errorf("verb %q has the prefix of granted verbs: use %q", name, rest)
	}
	local := name
	if domain, after, qualified := strings.Cut(name, "/"); qualified {
		if !isSubdomain(domain) {
			return fmt.Errorf("verb %q: domain %q is not a DNS subdomain: use one that you own, such as %q", name, domain, "example.com/"+after)
		}
		local = after
	}
	if local == "" {
		return fmt.Errorf("verb %q: the name is empty: use a noun in lowerCamelCase", name)
	}
	if len(local) > maxNameLength {
		return fmt.Errorf("verb %q: the name has %d characters: use at most %d", name, len(local), maxNameLength)
	}
	if !isLowerCamelCase(local) {
		return fmt.Errorf("verb %q is not lowerCamelCase: use %q", name, SuggestName(name))
	}
	return nil
}

// ValidateFieldVerb returns an error if name is not the name of a verb that a document may give a field. The error names the cure.
func ValidateFieldVerb(name string) error {
	if err := ValidateName(name); err != nil {
		return err
	}
	if name == Creation().Name() {
		return fmt.Errorf("verb %q is the verb of the existence of every object: use the noun of the field, or %q", name, "example.com/"+name)
	}
	return nil
}

func isLowerCamelCase(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
		case i > 0 && (c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'):
		default:
			return false
		}
	}
	return s != ""
}

// SuggestName returns the lowerCamelCase name that the author of an invalid name probably meant. It leaves a domain as it is, so the result may
// be invalid too.
func SuggestName(name string) string {
	domain, local, qualified := strings.Cut(strings.TrimPrefix(name, Prefix), "/")
	if !qualified {
		domain, local = "", domain
	}
	var b strings.Builder
	up := false
	for i := range len(local) {
		c := local[i]
		isLower, isUpper, isDigit := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
		switch {
		case !isLower && !isUpper && !isDigit:
			up = b.Len() > 0
		case b.Len() == 0 && isDigit:
		case b.Len() == 0 && isUpper:
			b.WriteByte(c - 'A' + 'a')
		case up && isLower:
			b.WriteByte(c - 'a' + 'A')
			up = false
		default:
			b.WriteByte(c)
			up = false
		}
	}
	if b.Len() == 0 {
		b.WriteString("name")
	}
	if qualified {
		return domain + "/" + b.String()
	}
	return b.String()
}

// isSubdomain reports whether s is a DNS subdomain (RFC 1123): labels of a-z, 0-9 and inner hyphens, separated by dots.
func isSubdomain(s string) bool {
	if s == "" || len(s) > maxDomainLength {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > maxLabelLength || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	return true
}
