package fieldpath

import (
	"crypto/sha256"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestDigests_AreEqualForEqualPaths draws pairs of paths of few different steps, some of them long. Two paths follow each other that share steps in memory.
func TestDigests_AreEqualForEqualPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // A test repeats its draws.
	names := []string{"a", "b", strings.Repeat("x", mostText-5), strings.Repeat("x", mostText), strings.Repeat("x", mostText) + "y"}
	step := func() func(Path) Path {
		name, kind, index := names[r.IntN(len(names))], r.IntN(4), r.IntN(2)
		return func(p Path) Path {
			switch kind {
			case 0:
				return p.Field(name)
			case 1:
				return p.Index(index)
			case 2:
				return p.Item([]Key{{Name: name, Value: []byte(`"1"`)}})
			default:
				return p.Key(name)
			}
		}
	}
	var d Digests
	equal := 0
	for range 1000 {
		var one, other Path
		for range 1 + r.IntN(4) {
			next := step()
			if one = next(one); r.IntN(8) == 0 {
				next = step()
			}
			other = next(other)
		}
		for _, next := range []func(Path) Path{step(), step()} {
			x, y := string(d.Append([]byte("before"), next(one))), string(d.Append([]byte("before"), next(other)))
			same := next(one).String() == next(other).String()
			if (x == y) != same {
				t.Fatalf("the texts are equal: %v, the paths are equal: %v\n%s\n%s", x == y, same, one, other)
			}
			if most := len("before#") + sha256.Size + mostText; len(x) > most {
				t.Fatalf("a text has %d bytes, more than %d", len(x), most)
			}
			if same {
				equal++
			}
		}
	}
	if equal < 100 || equal > 1900 {
		t.Errorf("%d of 2000 pairs were equal", equal)
	}
}
