package wsframe

import "testing"

func BenchmarkHide(b *testing.B) {
	p := make([]byte, 60<<10)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		Key{1, 2, 3, 4}.Hide(p)
	}
}
