package agent

import (
	"slices"
	"sync/atomic"

	"github.com/exec-server/exec-server/internal/fs"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/watch"
)

// conn is one connection from a harness.
type conn struct {
	server *Server
	hello  proto.Hello
	in     proto.Conn
	out    *outbox
	files  *fs.Files
	watch  watch.Slot
	lanes  scheduler
	http   httpHelper
	gone   chan struct{} // closed when the connection has ended
	asked  questions

	dropped     atomic.Bool             // nothing that it asks for is begun any more
	session     atomic.Pointer[session] // nil before initialize
	initialized atomic.Bool
}

// scheduler decides when and where a frame is worked on. take is called by the
// reading goroutine; the frame is valid until it returns.
type scheduler interface{ take(proto.Frame) }

func newConn(s *Server, pc proto.Conn, hello proto.Hello) *conn {
	c := &conn{server: s, hello: hello, in: pc, out: newOutbox(pc), files: fs.New(s.confineFiles), gone: make(chan struct{})}
	if hello.Concurrency > 1 {
		c.lanes = newParallel(c, hello.Concurrency)
	} else {
		c.lanes = newSerial(c)
	}
	return c
}

func (c *conn) serve() {
	for !c.dropped.Load() { // more may have been read than was worked on
		f, err := c.in.ReadFrame()
		if err != nil {
			break
		}
		c.lanes.take(f)
	}
	c.end()
	close(c.gone)
	c.http.end()
	c.files.Close()
	c.watch.Close()
	if sess := c.session.Load(); sess != nil {
		c.server.detach(sess)
	} else if id := c.hello.SessionID; id != "" {
		c.server.missed(id)
	}
}

// end drops the connection without a word.
func (c *conn) end() {
	c.dropped.Store(true)
	c.out.close()
}

// request is a message that has been decoded and may be carried out.
type request struct {
	c  *conn
	id proto.Value
	op operation
}

// operation is a decoded request.
type operation struct {
	do func(*conn) (proto.Result, error)
	// waits, if not nil, tells whether do would wait for something other than
	// the disk.
	waits func(*conn) bool
	// urgent operations never queue behind others when several may run.
	urgent bool
}

// receive decodes a message. It returns a request to carry out, or nil if the
// message needed none; what can be answered at once is answered.
func (c *conn) receive(f proto.Frame) *request {
	m, err := proto.ParseMessage(f.Body())
	if err != nil && c.hello.Relayed {
		c.end()
		return nil
	}
	if err != nil {
		c.out.answer(proto.ErrorFrame(proto.Value{}, proto.Invalid("failed to parse %s: %s", c.parsePrefix(), err)))
		return nil
	}
	switch {
	case m.Kind == proto.Notification && m.Method == "initialized" && c.session.Load() != nil:
		c.initialized.Store(true)
		return nil
	case m.Kind == proto.Answer && c.asked.answered(m):
		return nil
	case m.Kind != proto.Request: // nothing else is expected
		c.end()
		return nil
	}
	method, known := methods[m.Method]
	if known && method.extension && !c.hello.Extensions {
		known = false
	}
	if !known {
		c.fail(m.ID, proto.Errorf(proto.CodeUnknownMethod, "exec-server stub does not implement `%s` yet", m.Method))
		return nil
	}
	op, err := method.decode(m.Params)
	if err == nil {
		err = c.allowed(method.family)
	}
	if err != nil {
		c.fail(m.ID, err)
		return nil
	}
	op.urgent = method.urgent
	return &request{c: c, id: m.ID, op: op}
}

func (c *conn) parsePrefix() string {
	kind := "websocket JSON-RPC message"
	if c.hello.Peer == proto.StdioPeer {
		kind = "JSON-RPC message"
	}
	return kind + " from " + c.hello.Peer
}

// allowed holds requests to the order of the handshake.
func (c *conn) allowed(family string) error {
	switch attached := c.session.Load() != nil; {
	case family == "":
		if attached {
			return proto.Invalid("initialize may only be sent once per connection")
		}
	case !attached:
		return proto.Invalid("client must call initialize before using %s methods", family)
	case !c.initialized.Load():
		return proto.Invalid("client must send initialized before using %s methods", family)
	}
	return nil
}

func (c *conn) fail(id proto.Value, err error) {
	f := proto.ErrorFrame(id, proto.WireError(err))
	if c.hello.Relayed && len(f) > proto.HeaderSize+proto.MaxRequest { // the id alone is as long
		c.end()
		return
	}
	c.out.answer(f)
}

// answer makes the answer to a request, or says why it is too large for the
// connection. Where the size is known beforehand, a large one is not made.
func (c *conn) answer(id proto.Value, result proto.Result) (proto.Frame, error) {
	if !c.hello.Relayed {
		return proto.ResultFrame(id, result), nil
	}
	if s, ok := result.(proto.Sizer); ok {
		if size := s.SizeJSON(); size > proto.MaxRequest+proto.MaxRequest/2 { // it says up to a third too much
			return nil, tooLarge(size)
		}
	}
	f := proto.ResultFrame(id, result)
	if size := len(f.Body()); size > proto.MaxRequest {
		return nil, tooLarge(size)
	}
	return f, nil
}

func tooLarge(size int) error {
	return proto.Errorf(proto.CodeInternal, "the answer would have about %d bytes, and messages of at most %d can be relayed", size, proto.MaxRequest)
}

// followed is a result that starts something once it has been sent.
type followed interface{ afterAnswer() }

// run carries a request out and answers it.
func (r *request) run() {
	result, err := r.op.do(r.c)
	if err != nil {
		r.c.fail(r.id, err)
		return
	}
	if f, err := r.c.answer(r.id, result); err != nil {
		r.c.fail(r.id, err)
	} else {
		r.c.out.answer(f)
	}
	if f, ok := result.(followed); ok {
		f.afterAnswer()
	}
}

// own makes the request independent of the frame that it was read from.
// Everything but the id was copied when it was decoded.
func (r *request) own() *request {
	r.id = r.id.Clone()
	return r
}

// own copies a frame that has to outlive the reading of the next.
func own(f proto.Frame) proto.Frame { return slices.Clone(f) }
