package process

// Stream is where a chunk of output came from.
type Stream uint8

// Streams of a process.
const (
	Stdout Stream = iota
	Stderr
	PTY
)

var streamNames = [...]string{Stdout: "stdout", Stderr: "stderr", PTY: "pty"}

// String is the stream's name on the wire.
func (s Stream) String() string { return streamNames[s] }

// maxChunks bounds the bookkeeping of a process that prints single bytes.
const maxChunks = 50000

// chunk describes bytes in the ring; they follow those of the chunk before.
type chunk struct {
	seq    uint64
	size   uint32
	stream Stream
}

// ring keeps the last bytes of output, in whole chunks, the oldest of which go
// first. It grows with what is kept. Its owner guards it.
type ring struct {
	limit  int // bytes retained at most
	buf    []byte
	start  int // of the oldest byte in buf
	size   int // bytes kept
	chunks []chunk
	first  int // index of the oldest chunk; those before it are gone
}

// push keeps data as the newest chunk. A chunk above the limit is not kept.
func (r *ring) push(seq uint64, stream Stream, data []byte) {
	for r.first < len(r.chunks) && (r.size+len(data) > r.limit || len(r.chunks)-r.first >= maxChunks) {
		r.evict()
	}
	if len(data) > r.limit {
		return
	}
	r.grow(r.size + len(data))
	end := (r.start + r.size) % len(r.buf)
	n := copy(r.buf[end:], data)
	copy(r.buf, data[n:])
	r.size += len(data)
	if r.first > 1024 && r.first > len(r.chunks)/2 {
		r.chunks = append(r.chunks[:0], r.chunks[r.first:]...)
		r.first = 0
	}
	r.chunks = append(r.chunks, chunk{seq, uint32(len(data)), stream})
}

func (r *ring) evict() {
	n := int(r.chunks[r.first].size)
	r.start = (r.start + n) % len(r.buf)
	r.size -= n
	r.first++
}

func (r *ring) grow(need int) {
	if need <= len(r.buf) {
		return
	}
	size := max(512, len(r.buf))
	for size < need {
		size *= 2
	}
	buf := make([]byte, min(size, max(need, r.limit)))
	r.copyOut(buf, 0, r.size)
	r.buf, r.start = buf, 0
}

// copyOut copies n bytes, beginning offset bytes after the oldest.
func (r *ring) copyOut(dst []byte, offset, n int) {
	if n == 0 {
		return
	}
	at := (r.start + offset) % len(r.buf)
	m := copy(dst[:n], r.buf[at:])
	copy(dst[m:n], r.buf)
}

// Chunk is a piece of output as it was read from the process.
type Chunk struct {
	Seq    uint64
	Stream Stream
	Data   []byte
}

// after copies the chunks with a greater seq, oldest first: all of them, or as
// many as fit into maxBytes but at least one.
func (r *ring) after(seq uint64, maxBytes uint64) []Chunk {
	kept := r.chunks[r.first:]
	skip, offset := 0, 0
	for skip < len(kept) && kept[skip].seq <= seq {
		offset += int(kept[skip].size)
		skip++
	}
	kept = kept[skip:]
	total, n := uint64(0), 0
	for n < len(kept) && (n == 0 || total+uint64(kept[n].size) <= maxBytes) {
		total += uint64(kept[n].size)
		n++
	}
	if n == 0 {
		return nil
	}
	data := make([]byte, total)
	r.copyOut(data, offset, len(data))
	out := make([]Chunk, n)
	for i, c := range kept[:n] {
		out[i] = Chunk{c.seq, c.stream, data[:c.size:c.size]}
		data = data[c.size:]
	}
	return out
}
