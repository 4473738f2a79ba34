package hello

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"reflect"
	"testing"
	"time"
)

// one is a connection that has some bytes to read, and takes what is written.
type one struct {
	net.Conn
	in  io.Reader
	out *bytes.Buffer
}

func (c *one) Read(p []byte) (int, error)       { return c.in.Read(p) }
func (c *one) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c *one) Close() error                     { return nil }
func (c *one) SetDeadline(time.Time) error      { return nil }
func (c *one) SetReadDeadline(time.Time) error  { return nil }
func (c *one) SetWriteDeadline(time.Time) error { return nil }

// client is what crypto/tls sends first.
func client(t testing.TB, c *tls.Config) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := tls.Client(&one{in: bytes.NewReader(nil), out: &out}, c).Handshake(); err == nil {
		t.Fatal("a handshake with nobody")
	}
	b := out.Bytes()
	return b[:5+int(binary.BigEndian.Uint16(b[3:]))] // without the alert behind it
}

// oracle is the name that crypto/tls reads, and whether it has read a hello.
func oracle(b []byte) (name string, read bool) {
	_ = tls.Server(&one{in: bytes.NewReader(b), out: new(bytes.Buffer)}, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name, read = h.ServerName, true
			return nil, io.EOF
		},
	}).Handshake()
	return name, read
}

// records puts a handshake message into records of n bytes.
func records(message []byte, n int) []byte {
	var b []byte
	for len(message) > 0 {
		part := message[:min(n, len(message))]
		message = message[len(part):]
		b = append(b, recordHandshake, 3, 1, byte(len(part)>>8), byte(len(part)))
		b = append(b, part...)
	}
	return b
}

// ext is an extension.
func ext(kind int, data string) string {
	return string([]byte{byte(kind >> 8), byte(kind), byte(len(data) >> 8), byte(len(data))}) + data
}

func vec(n int, data string) string {
	b := make([]byte, 8)
	binary.BigEndian.PutUint64(b, uint64(len(data)))
	return string(b[8-n:]) + data
}

// message is a ClientHello with these extensions.
func message(extensions string) []byte {
	body := "\x03\x03" + string(make([]byte, 32)) + vec(1, "") + vec(2, "\x13\x01") + vec(1, "\x00") + vec(2, extensions)
	return []byte("\x01" + vec(3, body))
}

func sni(name string) string { return ext(extServerName, vec(2, "\x00"+vec(2, name))) }

func TestTLSOfAClient(t *testing.T) {
	alpn := []string{"h2", "http/1.1"}
	for name, c := range map[string]*tls.Config{
		"A.test": {ServerName: "A.test", NextProtos: alpn},
		"old":    {ServerName: "A.test", NextProtos: alpn, MaxVersion: tls.VersionTLS12, MinVersion: tls.VersionTLS10},
	} {
		b := client(t, c)
		for _, n := range []int{1, 2, 3, 4, 5, 100, 1 << 14} {
			want := Hello{Kind: TLS, Name: "a.test", ALPN: alpn}
			if h, done := parse(t, append(records(b[5:], n), 23, 3, 3)); !done || !reflect.DeepEqual(h, want) {
				t.Errorf("%s, records of %d: %+v, %v", name, n, h, done)
			}
		}
	}
	if h, done := parse(t, client(t, &tls.Config{InsecureSkipVerify: true})); !done || h.Name != "" || h.Hidden {
		t.Errorf("without a name: %+v, %v", h, done)
	}
}

func TestHellos(t *testing.T) {
	long := ext(1234, string(make([]byte, 60000)))
	for name, tt := range map[string]struct {
		bytes []byte
		want  Hello
	}{
		"name":              {records(message(sni("a.test")), 99), Hello{Kind: TLS, Name: "a.test"}},
		"encrypted":         {records(message(sni("a.test")+ext(extECH, "\x00")), 99), Hello{Kind: TLS, Name: "a.test", Hidden: true}},
		"encrypted, draft":  {records(message(ext(extESNI, "")+sni("a.test")), 99), Hello{Kind: TLS, Name: "a.test", Hidden: true}},
		"no extensions":     {records([]byte("\x01"+vec(3, "\x03\x01"+string(make([]byte, 32))+"\x00\x00\x02\x00\x05\x01\x00")), 99), Hello{Kind: TLS}},
		"twice":             {records(message(sni("a.test")+sni("b.test")), 999), Hello{Kind: TLS}},
		"twice, other":      {records(message(sni("a.test")+ext(5, "")+ext(5, "")), 999), Hello{Kind: TLS}},
		"two names":         {records(message(ext(0, vec(2, "\x00"+vec(2, "a.test")+"\x00"+vec(2, "b.test")))), 999), Hello{Kind: TLS}},
		"other kind":        {records(message(ext(0, vec(2, "\x01"+vec(2, "a.test")))), 999), Hello{Kind: TLS}},
		"address":           {records(message(sni("192.0.2.1")), 999), Hello{Kind: TLS}},
		"dot":               {records(message(sni("a.test.")), 999), Hello{Kind: TLS}},
		"zero":              {records(message(sni("a.test\x00.b.test")), 999), Hello{Kind: TLS}},
		"empty":             {records(message(sni("")), 999), Hello{Kind: TLS}},
		"list too long":     {records(message(ext(0, "\x00\xff\x00"+vec(2, "a.test"))), 999), Hello{Kind: TLS}},
		"more behind list":  {records(message(ext(0, vec(2, "\x00"+vec(2, "a.test"))+"x")), 999), Hello{Kind: TLS}},
		"extension too big": {records(message(sni("a.test")+"\x00\x05\xff\xff"), 999), Hello{Kind: TLS}},
		"half an extension": {records(message(sni("a.test")+"\x00"), 999), Hello{Kind: TLS}},
		"bad ALPN":          {records(message(sni("a.test")+ext(extALPN, "\x00\x03\x05h2")), 999), Hello{Kind: TLS}},
		"behind extensions": {records([]byte("\x01"+vec(3, string(message(sni("a.test"))[4:])+"x")), 999), Hello{Kind: TLS}},
		"too long":          {records(message(sni("a.test")+long), 1<<14), Hello{Kind: TLS}},
		"says too long":     {[]byte("\x16\x03\x01\x40\x00\x01\xff\xff\xff"), Hello{Kind: TLS}},
		"two in a record":   {records(append(message(sni("a.test")), message(sni("b.test"))...), 1<<14), Hello{Kind: TLS}},
		"empty record":      {[]byte("\x16\x03\x01\x00\x00"), Hello{Kind: TLS}},
		"huge record":       {[]byte("\x16\x03\x01\x40\x01"), Hello{Kind: TLS}},
		"other message":     {[]byte("\x16\x03\x01\x00\x10\x02"), Hello{Kind: TLS}},
		"other record":      {append(records(message(sni("a.test"))[:20], 20), "\x15\x03\x03\x00\x02\x01\x00"...), Hello{Kind: TLS}},
		"other version":     {append(records(message(sni("a.test"))[:20], 20), "\x16\x02\x03\x00\x02"...), Hello{Kind: TLS}},
		"version 2":         {[]byte("\x16\x02\x00"), Hello{}},
		"SSL 2":             {[]byte("\x80\x2e\x01\x03\x01"), Hello{}},
		"alert":             {[]byte("\x15\x03\x01\x00\x02\x01\x00"), Hello{}},
	} {
		if h, done := parse(t, tt.bytes); !done || !reflect.DeepEqual(h, tt.want) {
			t.Errorf("%s: %+v, %v", name, h, done)
		}
	}
	for _, text := range []string{"\x16", "\x16\x03", "\x16\x03\x01\x00", "\x16\x03\x01\x00\x10", "\x16\x03\x01\x00\x10\x01\x00\x00\x20"} {
		if h, done := Parse([]byte(text)); done || h.Kind != TLS {
			t.Errorf("%q is %+v, %v", text, h, done)
		}
	}
}
