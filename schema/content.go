package schema

import "encoding/binary"

// content is a text for everything that counts of a value: two values with equal content are the same for a compile. Each part is written with its
// length, so no two contents are equal by chance. A compile writes one for each entry and overlay: package fmt took a sixth of its time.
type content []byte

// flags writes at most eight flags.
func (c *content) flags(set ...bool) {
	var b byte
	for i, is := range set {
		if is {
			b |= 1 << i
		}
	}
	*c = append(*c, b)
}

func (c *content) number(n int) { *c = binary.AppendUvarint(*c, uint64(n)) }

// texts writes texts whose number is always the same.
func (c *content) texts(all ...string) {
	for _, text := range all {
		c.number(len(text))
		*c = append(*c, text...)
	}
}

// list writes any number of texts.
func (c *content) list(all ...string) {
	c.number(len(all))
	c.texts(all...)
}

// guards writes guards, of which some may be nil. A guard has content, so the empty text is that of nil.
func (c *content) guards(all []*guard) {
	c.number(len(all))
	for _, g := range all {
		if g == nil {
			c.texts("")
			continue
		}
		c.texts(g.content)
	}
}

func stringsOf[S ~string](all []S) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return out
}
