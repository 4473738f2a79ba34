package e2e

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/proto"
)

// socket is a bare WebSocket connection.
type socket struct {
	*websocket.Conn
	t   testing.TB
	ctx context.Context
}

func dialSocket(t testing.TB, url string) *socket {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	c, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(-1)
	t.Cleanup(func() { _ = c.CloseNow() })
	s := &socket{c, t, ctx}
	s.send(`{"id":0,"method":"initialize","params":{"clientName":"socket"}}`)
	if got := s.answer(); !strings.Contains(got, `"sessionId"`) {
		t.Fatal(got)
	}
	s.send(`{"method":"initialized"}`)
	return s
}

func (s *socket) send(text string) {
	s.t.Helper()
	if err := s.Write(s.ctx, websocket.MessageText, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

// answer is the next message that is no notification.
func (s *socket) answer() string {
	s.t.Helper()
	for {
		_, data, err := s.Read(s.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		if !strings.HasPrefix(string(data), `{"method"`) {
			return string(data)
		}
	}
}

// dropped waits for the end of the connection.
func (s *socket) dropped() {
	s.t.Helper()
	if _, data, err := s.Read(s.ctx); err == nil || s.ctx.Err() != nil {
		s.t.Errorf("the connection lives: %.200s, %v", data, err)
	}
}

const alive = `{"id":1,"result":{"status":"ready"}}`

// padded is a status request of so many bytes.
func padded(size int) string {
	const head, tail = `{"id":1,"method":"environment/status","pad":"`, `"}`
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

// frames is a WebSocket connection whose frames the test makes itself.
type frames struct {
	net.Conn
	t  testing.TB
	in *bufio.Reader
}

func dialFrames(t testing.TB, url string) *frames {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	f := &frames{c, t, bufio.NewReader(c)}
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n\r\n")
	if resp, err := http.ReadResponse(f.in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	f.send(`{"id":0,"method":"initialize","params":{"clientName":"frames"}}`, 1<<20)
	f.answer()
	f.send(`{"method":"initialized"}`, 1<<20)
	return f
}

// send sends a message in frames of up to a size. The server may end the
// connection meanwhile.
func (f *frames) send(text string, size int) {
	opcode := byte(1)
	for opcode == 1 || len(text) > 0 {
		part := text[:min(len(text), size)]
		text = text[len(part):]
		if len(text) == 0 {
			opcode |= 0x80
		}
		header := binary.BigEndian.AppendUint64([]byte{opcode, 0xff}, uint64(len(part)))
		if _, err := f.Write(append(header, 0, 0, 0, 0)); err != nil { // a mask that changes nothing
			return
		}
		if _, err := f.Write([]byte(part)); err != nil {
			return
		}
		opcode = 0
	}
}

// answer is the next message, "" at the end of the connection.
func (f *frames) answer() string {
	var header [4]byte
	if _, err := io.ReadFull(f.in, header[:2]); err != nil {
		return ""
	}
	size := int(header[1])
	if size == 126 {
		if _, err := io.ReadFull(f.in, header[2:]); err != nil {
			return ""
		}
		size = int(binary.BigEndian.Uint16(header[2:]))
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(f.in, text); err != nil {
		f.t.Error(err)
	}
	return string(text)
}

// Messages and their frames may be as large as the protocol says; one byte over
// ends that connection and no other.
func TestTrap45LargeMessages(t *testing.T) {
	const frame, message = 16 << 20, 64 << 20
	everywhere(t, func(t *testing.T, p *place) {
		other, f := dialFrames(t, p.url), dialFrames(t, p.url)
		for _, size := range []int{33 << 10, frame, message} {
			f.send(padded(size), frame)
			if got := f.answer(); got != alive {
				t.Fatalf("%d bytes: %q", size, got)
			}
		}
		f.send(padded(message+1), frame)
		if got := f.answer(); got != "" {
			t.Errorf("%d bytes are answered %q", message+1, got)
		}
		f = dialFrames(t, p.url)
		f.send(padded(frame+1), frame+1)
		if got := f.answer(); got != "" {
			t.Errorf("a frame of %d bytes is answered %q", frame+1, got)
		}
		other.send(padded(1000), frame)
		if got := other.answer(); got != alive {
			t.Errorf("another connection: %q", got)
		}
	})
}

// While a request waits the connection is read: pings are answered, and its end
// is noticed.
func TestTrap46PongsPassAWaitingRequest(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		s := dialSocket(t, p.url)
		s.send(`{"id":2,"method":"process/start","params":{"processId":"p","argv":["sleep","1000"],"cwd":"file:///","env":{"PATH":"/bin:/usr/bin"},"tty":false}}`)
		s.answer()
		s.send(`{"id":3,"method":"process/read","params":{"processId":"p","waitMs":600000}}`)
		s.send(`{"id":4,"method":"process/terminate","params":{"processId":"p"}}`) // waits behind, by the protocol
		got := make(chan string, 1)
		go func() { // pongs are found by who reads
			_, data, _ := s.Read(s.ctx)
			got <- string(data)
		}()
		for range 3 {
			if err := s.Ping(s.ctx); err != nil {
				t.Fatalf("no pong: %v", err)
			}
		}
		if len(got) > 0 {
			t.Errorf("answered: %s", <-got)
		}
		h := p.connect("/", "")
		id, _ := h.script(nil, "exec sleep 1000")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { time.Sleep(50 * time.Millisecond); cancel() }()
		if _, err := h.c.Call(ctx, "process/read", map[string]any{"processId": id, "waitMs": 600000}); err == nil {
			t.Error("a read of nothing was answered")
		}
		_ = h.c.Close() // with the read given up by one side and not by the other
		if again := p.resume(h.session); !again.terminate(id) {
			t.Error("its command was gone")
		}
	})
}

// A stream of output that is cut and cut again comes together from what arrived
// and what process/read gives, to the byte and the number.
func TestTrap48StreamAcrossDrops(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		way, cable := throughFragile(t, p.server)
		rounds := scale(t, 40, 100)
		const block = 512 << 10 // less than what is retained
		data := make([]byte, block)
		for i := range data {
			data[i] = byte(i*7) ^ byte(i>>8)
		}
		feed := p.connect("/", "")
		feed.must("fs/writeFile", map[string]any{"path": p.uri("block"), "dataBase64": base64Of(string(data))})

		type piece struct {
			seq  uint64
			data []byte
		}
		var got []byte
		var after uint64 // all up to here has come
		watch := func(h *harness, id string) chan piece {
			arrived := make(chan piece, 10000)
			h.watch(id, func(e event) { arrived <- piece{e.seq, e.data} })
			return arrived
		}
		id := fmt.Sprint("p", serial.Add(1))
		h := way.connect("/", "")
		arrived := watch(h, id)
		if err := h.spawnAs(id, withStdin, "/bin/sh", "-c", "while read x; do cat "+p.dir+"/block; done"); err != nil {
			t.Fatal(err)
		}
		for round := range rounds {
			asked := fmt.Sprint(round)
			_, _ = h.call("process/write", map[string]any{"processId": id, "writeId": asked, "chunk": base64Of("\n")})
			// Take a part of the block, which is another one each time, and cut.
			for n := 0; n < (round*40_000)%block; {
				var next piece
				select {
				case next = <-arrived:
				case <-time.After(time.Minute):
					t.Fatalf("round %d: nothing comes after %d bytes", round, n)
				}
				if next.seq <= after {
					continue // it has been read
				}
				if next.seq != after+1 {
					t.Fatalf("event %d follows %d", next.seq, after)
				}
				n += len(next.data)
				got = append(got, next.data...)
				after = next.seq
			}
			cable.cut()
			<-h.c.Done()
			var err error
			if h, err = takeUp(way, h.session); err != nil {
				t.Fatal(err)
			}
			arrived = watch(h, id)
			h.write(id, asked, "\n") // it may have got lost with the connection
			for want := (round + 1) * block; len(got) < want; {
				read := h.must("process/read", map[string]any{"processId": id, "afterSeq": after, "waitMs": 60000, "maxBytes": 100000})
				chunks := read.Get("chunks")
				if chunks.Len() == 0 {
					t.Fatalf("nothing comes after %d bytes", len(got))
				}
				for i := range chunks.Len() {
					seq, _ := chunks.At(i).Get("seq").Uint64()
					if seq != after+1 {
						t.Fatalf("chunk %d is read after %d", seq, after)
					}
					part, _ := proto.DecodeBase64(chunks.At(i).Get("chunk").Bytes())
					got = append(got, part...)
					after = seq
				}
			}
		}
		for round := range rounds {
			if string(got[round*block:(round+1)*block]) != string(data) {
				t.Fatalf("block %d is another", round)
			}
		}
		if len(got) != rounds*block {
			t.Errorf("%d bytes, want %d", len(got), rounds*block)
		}
		h.terminate(id)
	})
}

// takeUp resumes over a way that has just been cut.
func takeUp(way *server, session string) (*harness, error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		h, err := way.tryConnect("/", session)
		if err == nil || !strings.HasPrefix(refused(err), "-32010 ") || time.Now().After(end) {
			return h, err
		}
	}
}

// What a detached command prints beyond what is retained is missing from the
// front, and the numbers say so; the last of it is always there.
func TestTrap48OutputBeyondWhatIsRetained(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		way, cable := throughFragile(t, p.server)
		h := way.connect("/", "")
		id, c := h.script(nil, "seq 1 1000000; echo end")
		wait(t, c.prints, "its output")
		cable.cut()
		again := p.resume(h.session)
		eventually(t, "its end", func() bool {
			return again.must("process/read", map[string]any{"processId": id, "maxBytes": 0}).Get("closed").Kind == proto.True
		})
		read := again.must("process/read", map[string]any{"processId": id})
		out := chunksOf(t, read)
		var all strings.Builder
		for i := range 1000000 {
			fmt.Fprintln(&all, i+1)
		}
		all.WriteString("end\n")
		if len(out) < 1<<20-8<<10 || len(out) > 1<<20 || !strings.HasSuffix(all.String(), out) {
			t.Errorf("%d bytes are retained, which are the end: %v", len(out), strings.HasSuffix(all.String(), out))
		}
		for i := range read.Get("chunks").Len() - 1 {
			a, _ := read.Get("chunks").At(i).Get("seq").Uint64()
			b, _ := read.Get("chunks").At(i + 1).Get("seq").Uint64()
			if b != a+1 {
				t.Errorf("chunk %d follows %d", b, a)
			}
		}
	})
}

func TestTrap50AttachedSession(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		id, c := h.script(withStdin, "echo up; read x; echo $x")
		wait(t, c.prints, "its output")
		for range 3 {
			if _, err := p.tryConnect("/", h.session); refused(err) != "-32010 session "+h.session+" is already attached to another connection" {
				t.Error(refused(err))
			}
		}
		h.write(id, "1", "undisturbed\n")
		wait(t, c.closed, "the command")
		if got := c.out.String(); got != "up\nundisturbed\n" {
			t.Errorf("it printed %q", got)
		}
	})
}

// No web page can reach the listener.
func TestTrap51Browsers(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		for _, origin := range []string{"https://evil.example", "null", "", "http://127.0.0.1", "file://"} {
			for _, path := range []string{"/", "/environments/x", "/readyz", "/nothing"} {
				_, resp, err := websocket.Dial(t.Context(), p.url+path, &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
				if err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
					t.Errorf("origin %q, %s: %v, %v", origin, path, resp, err)
				}
			}
		}
	})
}

// With several requests at once a waiting read holds up nothing. By default
// requests keep their order, by the protocol: that is TestTrap46.
func TestTrap53WaitingReadHoldsUpNothing(t *testing.T) {
	const concurrent = "[listen]\nconcurrent_requests = 2\n"
	everywhereIn(t, concurrent, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		id, c := h.script(withStdin, "echo up; exec sleep 1000")
		wait(t, c.prints, "its output")
		var answered atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = h.call("process/read", map[string]any{"processId": id, "afterSeq": 1, "waitMs": 600000})
			answered.Store(true)
		}()
		time.Sleep(20 * time.Millisecond)
		h.write(id, "1", "x")
		h.must("fs/getMetadata", map[string]any{"path": "file:///"})
		if answered.Load() {
			t.Error("the read does not wait")
		}
		if !h.terminate(id) {
			t.Error("it was not running")
		}
		<-done
		wait(t, c.closed, "its end")
	})
}

// TestTrap54SmallFramesAreNotHeldBack is in internal/transport.

// Whoever waits for something of a container whose shim dies is told at once: the
// connection ends, perhaps after the agent has seen the command end before
// itself. That a command of a lost container exits with -1 and a failure is for
// when there is a record of it outside.
func TestTrap55LostContainer(t *testing.T) {
	r := newRoot(t, "")
	s := r.serve()
	h := s.connect("/", "")
	id, c := h.script(nil, "echo up; exec sleep 1000")
	wait(t, c.prints, "its output")
	told := make(chan bool, 1)
	go func() {
		v, err := h.call("process/read", map[string]any{"processId": id, "afterSeq": 1, "waitMs": 600000})
		told <- err != nil || v.Get("exited").Kind == proto.True
	}()
	p := &place{server: s, root: r}
	kill([]int{parentOf(t, p.pid())})
	select {
	case ok := <-told:
		if !ok {
			t.Error("the read was answered as if nothing had happened")
		}
	case <-time.After(time.Minute):
		t.Error("the caller hangs")
	}
	if got := s.connect("/", "").sh("echo alive"); got != "alive" {
		t.Errorf("the next container says %q", got)
	}
}

// A notification of the harness other than initialized ends its connection,
// without a word: so does the stock executor. (Its published README says that it
// is answered with an error of id -1, and newer ones take
// network/policyDecision.)
func TestTrap59aNotificationsOfTheHarness(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		other := dialSocket(t, p.url)
		for _, params := range []map[string]any{{"requestId": 1, "decision": "allow"}, {"processId": "none"}, {}} {
			text, err := json.Marshal(map[string]any{"method": "network/policyDecision", "params": params})
			if err != nil {
				t.Fatal(err)
			}
			s := dialSocket(t, p.url)
			s.send(string(text))
			s.dropped()
		}
		other.send(padded(100))
		if got := other.answer(); got != alive {
			t.Error(got)
		}
	})
}
