package agent

import (
	"time"

	"github.com/exec-server/exec-server/internal/fs"
	"github.com/exec-server/exec-server/internal/proto"
)

// method is a row of the dispatch table.
type method struct {
	// family is the word for the method in handshake errors; "" is initialize.
	family string
	// decode turns params into an operation, or refuses them.
	decode func(proto.Value) (operation, error)
	// urgent methods are never queued when several requests may run at once.
	urgent bool
	// extension methods are unknown to harnesses.
	extension bool
}

var methods = map[string]method{
	"initialize":         {decode: decodeInitialize, urgent: true},
	"environment/status": {family: "environment status", decode: decodeStatus, urgent: true},
	"environment/info":   {family: "environment info", decode: decodeInfo, urgent: true},
	"process/start":      {family: "exec", decode: decodeStart},
	"process/read":       {family: "exec", decode: decodeRead},
	"process/write":      {family: "exec", decode: decodeWrite},
	"process/signal":     {family: "exec", decode: decodeSignal, urgent: true},
	"process/terminate":  {family: "exec", decode: decodeTerminate, urgent: true},
	"http/request":       {family: "http", decode: decodeHTTP},

	"fs/watchMissing":            {family: "filesystem", decode: decodeWatchMissing},
	"capabilityRoots/discoverV1": {family: "capability discovery", decode: decodeDiscover},
	"environmentConfig/read":     {family: "environment config", decode: decodeConfigRead},
	"capabilities/discoverV2":    {family: "capability discovery", decode: decodeDiscoverV2},

	"process/resize":     {family: "exec", decode: decodeResize, urgent: true, extension: true},
	"process/closeStdin": {family: "exec", decode: decodeCloseStdin, extension: true},
}

func init() {
	for name, decode := range fs.Methods {
		methods[name] = method{family: "filesystem", urgent: name == "fs/close", decode: func(params proto.Value) (operation, error) {
			do, err := decode(params)
			return operation{do: func(c *conn) (proto.Result, error) { return do(c.files) }}, err
		}}
	}
}

func decodeInitialize(v proto.Value) (operation, error) {
	p := proto.ParamsOf(v, "InitializeParams")
	p.String("clientName")
	resume, resuming := p.OptString("resumeSessionId")
	return operation{do: func(c *conn) (proto.Result, error) {
		var sess *session
		var err error
		if resuming {
			sess, err = c.server.resume(c, resume)
		} else {
			sess, err = c.server.open(c)
		}
		if err != nil {
			return nil, err
		}
		c.session.Store(sess)
		return initialized{c, sess}, nil
	}}, p.Err()
}

// initialized is the answer to initialize. Notifications flow after it.
type initialized struct {
	c    *conn
	sess *session
}

// AppendJSON implements proto.Result.
func (r initialized) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"sessionId":`...)
	dst = append(proto.AppendString(dst, r.sess.id), `,"environmentInfo":`...)
	return append(r.c.server.info().AppendJSON(dst), '}')
}

func (r initialized) afterAnswer() { r.sess.out.Store(r.c.out) }

func decodeStatus(v proto.Value) (operation, error) {
	return operation{do: func(*conn) (proto.Result, error) {
		return proto.JSON(`{"status":"ready"}`), nil
	}}, proto.NoParams(v)
}

func decodeInfo(v proto.Value) (operation, error) {
	return operation{do: func(c *conn) (proto.Result, error) { return c.server.info(), nil }}, proto.NoParams(v)
}

func decodeRead(v proto.Value) (operation, error) {
	p := proto.ParamsOf(v, "ReadParams")
	id := p.String("processId")
	after, _ := p.OptUint("afterSeq")
	maxBytes, bounded := p.OptUint("maxBytes")
	waitMs, _ := p.OptUint("waitMs")
	wait := time.Duration(min(waitMs, 1<<40)) * time.Millisecond
	waits := func(c *conn) bool {
		if wait == 0 {
			return false
		}
		p, _ := c.session.Load().find(id)
		return p != nil && !p.Ready(after)
	}
	return operation{waits: waits, do: func(c *conn) (proto.Result, error) {
		p, starting := c.session.Load().find(id)
		switch {
		case starting:
			return nil, proto.Invalid("process %s is starting", id)
		case p == nil:
			return nil, proto.Invalid("unknown process id %s", id)
		}
		return p.Read(after, maxBytes, bounded, wait, c.gone), nil
	}}, p.Err()
}

type statusResult string

// AppendJSON implements proto.Result.
func (s statusResult) AppendJSON(dst []byte) []byte {
	return append(proto.AppendString(append(dst, `{"status":`...), string(s)), '}')
}

func decodeWrite(v proto.Value) (operation, error) {
	p := proto.ParamsOf(v, "WriteParams")
	id := p.String("processId")
	chunk := p.Required("chunk")
	p.Text(chunk)
	writeID := p.String("writeId")
	if p.Err() == nil && writeID == "" {
		return operation{}, proto.BadParams("writeId must not be empty")
	}
	if len(writeID) > maxWriteID {
		return operation{}, proto.BadParams("writeId must not exceed %d bytes", maxWriteID)
	}
	data, err := proto.DecodeBase64(chunk.Bytes())
	if err != nil {
		p.Fail(proto.BadParams("%s", err))
	}
	waits := func(c *conn) bool {
		p, _ := c.session.Load().find(id)
		return p != nil && p.StdinFull()
	}
	return operation{waits: waits, do: func(c *conn) (proto.Result, error) {
		p, starting := c.session.Load().find(id)
		switch {
		case starting:
			return statusResult("starting"), nil
		case p == nil:
			return statusResult("unknownProcess"), nil
		}
		status, err := p.Write(writeID, data, c.gone)
		return statusResult(status), err
	}}, p.Err()
}

// maxWriteID bounds what 4096 remembered ids of a process take.
const maxWriteID = 1024

func decodeSignal(v proto.Value) (operation, error) {
	p := proto.ParamsOf(v, "SignalParams")
	id := p.String("processId")
	p.Variant(p.Required("signal"), "interrupt")
	return operation{do: func(c *conn) (proto.Result, error) {
		if p, _ := c.session.Load().find(id); p != nil {
			p.Interrupt()
		}
		return proto.Empty{}, nil
	}}, p.Err()
}

type runningResult bool

// AppendJSON implements proto.Result.
func (r runningResult) AppendJSON(dst []byte) []byte {
	return append(proto.AppendBool(append(dst, `{"running":`...), bool(r)), '}')
}

func decodeTerminate(v proto.Value) (operation, error) {
	p := proto.ParamsOf(v, "TerminateParams")
	id := p.String("processId")
	return operation{do: func(c *conn) (proto.Result, error) {
		p, _ := c.session.Load().find(id)
		return runningResult(p != nil && p.Terminate()), nil
	}}, p.Err()
}

func decodeResize(v proto.Value) (operation, error) {
	p := proto.ParamsOf(v, "ResizeParams")
	id, rows, cols := p.String("processId"), p.Uint("rows"), p.Uint("cols")
	if p.Err() == nil && (rows == 0 || cols == 0 || rows > 1<<15 || cols > 1<<15) {
		return operation{}, proto.BadParams("rows and cols must be between 1 and 32768")
	}
	return operation{do: func(c *conn) (proto.Result, error) {
		if p, _ := c.session.Load().find(id); p != nil {
			p.Resize(uint16(rows), uint16(cols))
		}
		return proto.Empty{}, nil
	}}, p.Err()
}

func decodeCloseStdin(v proto.Value) (operation, error) {
	p := proto.ParamsOf(v, "CloseStdinParams")
	id := p.String("processId")
	return operation{do: func(c *conn) (proto.Result, error) {
		if p, _ := c.session.Load().find(id); p != nil {
			p.CloseStdin()
		}
		return proto.Empty{}, nil
	}}, p.Err()
}
