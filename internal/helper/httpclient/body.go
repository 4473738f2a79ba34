package httpclient

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http/httputil"

	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds what a compressed body makes the decoder hold, in bytes. RFC
// 9659 has it for zstd on the web.
const maxWindow = 8 << 20

// ErrBody says that a body broke off, came too late, or was not what it was
// said to be.
var ErrBody = errors.New("error decoding response body")

// Body is what follows the head of a response, decoded.
type Body struct {
	link   *link
	pool   *pool
	ctx    context.Context
	stop   func() bool        // of what ends the connection with ctx
	cancel context.CancelFunc // of ctx
	keep   bool               // the connection is good for another request

	raw     io.Reader // the body as it was sent
	reader  io.Reader // the body decoded, or raw
	release func()    // of the decoder
	err     error     // what the body ended with
	ended   bool
}

// frame says how the body ends.
func (b *Body) frame(f framing) {
	switch {
	case f.chunked:
		b.raw = &chunks{chunks: httputil.NewChunkedReader(b.link.in), in: b.link.in}
	case f.length >= 0:
		b.raw = &exactly{in: b.link.in, left: f.length}
	default:
		b.raw = b.link.in
	}
	b.reader = b.raw
	if f.length == 0 {
		b.reader = eof{}
		b.finish()
	}
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// decode undoes the compression that the headers tell, and takes them out.
func (b *Body) decode(h *headers) {
	coding := h.get("content-encoding")
	if coding != "gzip" && coding != "zstd" {
		return
	}
	h.remove("content-encoding", "content-length")
	if b.ended {
		return
	}
	b.reader = &decoder{coding: coding, b: b}
}

// decoder starts to decode with the first byte, since an empty body is not
// compressed.
type decoder struct {
	coding string
	b      *Body
	in     io.Reader
}

func (d *decoder) Read(p []byte) (int, error) {
	if d.in == nil {
		buffered := bufio.NewReader(d.b.raw)
		if _, err := buffered.Peek(1); err != nil {
			return 0, err
		}
		if err := d.start(buffered); err != nil {
			return 0, err
		}
	}
	return d.in.Read(p)
}

func (d *decoder) start(in *bufio.Reader) error {
	if d.coding == "gzip" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		z.Multistream(false) // as the reference: the first member is all
		d.in = z
		return nil
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	d.in, d.b.release = z, z.Close
	return nil
}

// Read implements io.Reader. Its errors are io.EOF and ErrBody.
func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.reader.Read(p)
	if err == nil || n > 0 {
		return n, nil // the error comes again
	}
	if b.err = ErrBody; err == io.EOF {
		b.err = io.EOF
		b.finish()
	}
	b.end(false)
	return 0, b.err
}

// finish ends a body that has been read, and keeps the connection if nothing of
// the body is left on it.
func (b *Body) finish() {
	keep := b.keep
	switch r := b.raw.(type) {
	case *exactly:
		keep = keep && r.left == 0
	case *chunks:
		// A decoder stops before the chunk that ends the body.
		if !r.done && b.link.in.Buffered() > 0 {
			_, _ = r.Read(make([]byte, 1))
		}
		keep = keep && r.done
	}
	b.end(keep)
}

// skip gives up the rest of a body.
func (b *Body) skip() {
	if r, ok := b.raw.(*exactly); ok && r.left <= int64(b.link.in.Buffered()) {
		_, _ = b.link.in.Discard(int(r.left))
		r.left = 0
		b.finish()
		return
	}
	b.end(false)
}

// end gives up the connection, or keeps it for the next request.
func (b *Body) end(keep bool) {
	if b.ended {
		return
	}
	b.ended = true
	if b.stop() && keep {
		b.pool.put(b.link)
	} else {
		_ = b.link.Close()
	}
	if b.release != nil {
		b.release()
	}
}

// Close ends the request. It may be called again.
func (b *Body) Close() {
	b.end(false)
	b.cancel()
}

// exactly reads a body of known length.
type exactly struct {
	in   *bufio.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.in.Read(p[:min(int64(len(p)), e.left)])
	if e.left -= int64(n); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// chunks reads a chunked body with what follows its last chunk.
type chunks struct {
	chunks io.Reader
	in     *bufio.Reader
	done   bool
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.done {
		return 0, io.EOF
	}
	n, err := c.chunks.Read(p)
	if err != io.EOF {
		return n, err
	}
	left := maxHead
	for {
		switch line, err := readLine(c.in, &left); {
		case err != nil:
			return n, err
		case line == "":
			c.done = true
			return n, io.EOF
		}
	}
}
