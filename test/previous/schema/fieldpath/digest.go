package fieldpath

import "crypto/sha256"

// mostText is the number of bytes of a text above which a hash takes its place.
const mostText = 512

// Digests appends short texts of paths. A long name in a path is read once, however many paths share the steps to it. The zero Digests is
// empty. Only one goroutine may use it.
type Digests struct {
	known map[*node][sha256.Size]byte
}

// Append appends a text that two paths share if String is the same for both, and only then. A hash stands for what is long.
func (d *Digests) Append(out []byte, p Path) []byte {
	if p.IsRoot() {
		return p.Append(out)
	}
	return d.append(out, len(out), p.last)
}

// append appends the text of a step and of those before it. The text begins at an index of out. Which steps a hash stands for depends only on
// the texts, so that equal paths have equal hashes.
func (d *Digests) append(out []byte, begin int, n *node) []byte {
	if n == nil {
		return out
	}
	if sum, has := d.known[n]; has {
		return appendSum(out[:begin], sum)
	}
	out = n.appendStep(d.append(out, begin, n.up))
	if len(out)-begin <= mostText {
		return out
	}
	sum := sha256.Sum256(out[begin:])
	if d.known == nil {
		d.known = map[*node][sha256.Size]byte{}
	}
	d.known[n] = sum
	return appendSum(out[:begin], sum)
}

// appendSum marks a hash by a sign that begins no path.
func appendSum(out []byte, sum [sha256.Size]byte) []byte { return append(append(out, '#'), sum[:]...) }
