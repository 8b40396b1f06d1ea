package bench

import "testing"

// BenchmarkReview processes one review in four ways. Bytes are the bytes of the whole body. The checks are in the cache.
func BenchmarkReview(b *testing.B) {
	d := newDesk(b)
	for _, c := range reviewed {
		b.Run(c.name, func(b *testing.B) {
			r := c.make(b)
			for _, approach := range approaches {
				b.Run(approach.name, func(b *testing.B) {
					measure(b, r.body, approach.make(b, d, r))
				})
			}
		})
	}
}
