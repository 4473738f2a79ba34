package process

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// naive does what ring does, with no regard to cost.
type naive struct {
	limit int
	kept  []Chunk
}

func (n *naive) push(seq uint64, stream Stream, data []byte) {
	n.kept = append(n.kept, Chunk{seq, stream, bytes.Clone(data)})
	for n.size() > n.limit || len(n.kept) > maxChunks {
		n.kept = n.kept[1:]
	}
}

func (n *naive) size() (sum int) {
	for _, c := range n.kept {
		sum += len(c.Data)
	}
	return sum
}

func (n *naive) after(seq, maxBytes uint64) (out []Chunk) {
	total := uint64(0)
	for _, c := range n.kept {
		if c.Seq <= seq {
			continue
		}
		if total += uint64(len(c.Data)); len(out) > 0 && total > maxBytes {
			return out
		}
		out = append(out, c)
	}
	return out
}

func TestRingKeepsWhatASliceWould(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + r.IntN(3000)
		ours, model := ring{limit: limit}, naive{limit: limit}
		seq := uint64(0)
		for range 200 {
			seq += 1 + r.Uint64N(3) // exits and other streams take numbers too
			data := make([]byte, 1+r.IntN(min(limit, 1+r.IntN(1000))))
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			stream := Stream(r.IntN(3))
			ours.push(seq, stream, data)
			model.push(seq, stream, data)
			after, maxBytes := r.Uint64N(seq+3), r.Uint64N(uint64(limit)+2)
			if r.IntN(4) == 0 {
				after, maxBytes = 0, ^uint64(0)
			}
			got := ours.after(after, maxBytes)
			want := model.after(after, maxBytes)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: after(%d, %d) with %d kept:\n got %s\nwant %s", seed, after, maxBytes, len(model.kept), brief(got), brief(want))
			}
		}
		if len(ours.buf) > max(512, limit) {
			t.Fatalf("seed %d: %d bytes of buffer for a limit of %d", seed, len(ours.buf), limit)
		}
	}
}

func brief(chunks []Chunk) (s string) {
	for _, c := range chunks {
		s += fmt.Sprintf("%d:%s:%d ", c.Seq, c.Stream, len(c.Data))
	}
	return s
}

func TestRingBoundsTheNumberOfChunks(t *testing.T) {
	r := ring{limit: 1 << 20}
	const n = 3 * maxChunks
	for i := range n {
		r.push(uint64(i+1), Stdout, []byte{byte(i)})
	}
	got := r.after(0, ^uint64(0))
	if len(got) != maxChunks || got[0].Seq != n-maxChunks+1 || got[len(got)-1].Seq != n {
		t.Errorf("%d chunks are kept, from %d on", len(got), got[0].Seq)
	}
	if len(r.chunks) > 2*maxChunks+1 {
		t.Errorf("%d chunks are remembered", len(r.chunks))
	}
}

func TestRingGrowsWithWhatIsKept(t *testing.T) {
	r := ring{limit: 1 << 20}
	r.push(1, Stdout, make([]byte, 100))
	if len(r.buf) > 1024 {
		t.Errorf("100 bytes take a buffer of %d", len(r.buf))
	}
}

// What a reader got must not change when the ring goes on.
func TestRingGivesCopies(t *testing.T) {
	r := ring{limit: 8}
	r.push(1, Stdout, []byte("aaaa"))
	got := r.after(0, 100)
	for i := range 10 {
		r.push(uint64(i+2), Stdout, []byte("bbbb"))
	}
	if string(got[0].Data) != "aaaa" {
		t.Errorf("the chunk is %q now", got[0].Data)
	}
	if cap(got[0].Data) != len(got[0].Data) {
		t.Error("a chunk can grow into the next")
	}
}
