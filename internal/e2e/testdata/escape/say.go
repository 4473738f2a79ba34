package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// query sends a message of DNS, in hexadecimal digits, and tells the answer's code
// and size. A third argument has it go over TCP.
func query(args []string) (string, error) {
	b, err := hex.DecodeString(args[1])
	if err != nil {
		return "", err
	}
	network := "udp"
	if len(args) > 2 {
		network, b = "tcp", append([]byte{byte(len(b) >> 8), byte(len(b))}, b...)
	}
	c, err := net.DialTimeout(network, args[0], patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Write(b); err != nil {
		return "", err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	answer := make([]byte, 4096)
	n, err := c.Read(answer)
	if err != nil {
		return "", err
	}
	if network == "tcp" {
		answer, n = answer[2:], n-2
	}
	if n < 12 {
		return "", errors.New("a short answer")
	}
	if code := answer[3] & 15; code != 0 {
		return "", errors.New("rcode " + strconv.Itoa(int(code)))
	}
	if answer[7] == 0 {
		return "", errors.New("no answer")
	}
	return strconv.Itoa(int(answer[7])) + " answers", nil
}

// sayRaw sends bytes, quoted as Go does it, and tells what it hears. Parts of them are
// sent apart from each other.
func sayRaw(args []string) (string, error) {
	c, err := net.DialTimeout("tcp", args[0], patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return converse(c, args[1:])
}

func converse(c net.Conn, parts []string) (string, error) {
	for _, part := range parts {
		b, err := strconv.Unquote(`"` + part + `"`)
		if err != nil {
			return "", err
		}
		if _, err := io.WriteString(c, b); err != nil {
			return "", err
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience / 3))
	heard, err := io.ReadAll(io.LimitReader(c, 1<<20))
	if len(heard) > 0 {
		return strconv.Quote(string(heard)), nil
	}
	if err == nil {
		err = errors.New("EOF")
	}
	return "", err
}

// request says bytes within TLS for a name.
func request(args []string) (string, error) {
	pool := x509.NewCertPool()
	ca, err := os.ReadFile("/run/exec-server/ca.pem")
	if err != nil {
		return "", err
	}
	pool.AppendCertsFromPEM(ca)
	c, err := net.DialTimeout("tcp", args[0], patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	t := tls.Client(c, &tls.Config{ServerName: args[1], RootCAs: pool})
	if err := t.Handshake(); err != nil {
		return "", err
	}
	return converse(t, args[2:])
}

// sayHello sends a ClientHello for a name, in the way that the other arguments say,
// and tells whether there is any answer.
func sayHello(args []string) (string, error) {
	name, err := strconv.Unquote(`"` + args[1] + `"`)
	if err != nil {
		return "", err
	}
	c, err := net.DialTimeout("tcp", args[0], patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	pieces := clientHello(name, args[2:])
	for _, p := range pieces {
		if _, err := c.Write(p); err != nil {
			return "", err
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience / 3))
	b, err := bufio.NewReader(c).ReadByte()
	if err != nil {
		return "", err
	}
	return map[byte]string{21: "an alert", 22: "a handshake"}[b], nil
}

func vector(size int, parts ...[]byte) []byte {
	body := slices.Concat(parts...)
	length := make([]byte, size)
	for i := range size {
		length[size-1-i] = byte(len(body) >> (8 * i))
	}
	return append(length, body...)
}

func extension(kind int, data []byte) []byte {
	return append([]byte{byte(kind >> 8), byte(kind)}, vector(2, data)...)
}

// clientHello is one with a server's name, in the pieces that are to be sent.
func clientHello(name string, odd []string) [][]byte {
	is := func(what string) bool { return strings.Contains(" "+strings.Join(odd, " ")+" ", " "+what+" ") }
	sni := extension(0, vector(2, append([]byte{0}, vector(2, []byte(name))...)))
	extensions := [][]byte{
		extension(10, []byte{0, 2, 0, 29}), extension(13, []byte{0, 4, 4, 3, 8, 4}),
		extension(43, []byte{2, 3, 4}), extension(51, vector(2, []byte{0, 29}, vector(2, make([]byte, 32)))),
	}
	switch {
	case is("none"):
	case is("twice"):
		extensions = append(extensions, sni, extension(0, vector(2, append([]byte{0}, vector(2, []byte("web.example"))...))))
	case is("two"):
		web := append([]byte{0}, vector(2, []byte("web.example"))...)
		extensions = append(extensions, extension(0, vector(2, web, append([]byte{0}, vector(2, []byte(name))...))))
	default:
		extensions = append(extensions, sni)
	}
	if is("ech") {
		extensions = append(extensions, extension(0xfe0d, make([]byte, 64)))
	}
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, vector(1, make([]byte, 32))...)
	body = append(body, 0, 2, 0x13, 1, 1, 0)
	var all []byte
	for _, e := range extensions {
		all = append(all, e...)
	}
	body = append(body, vector(2, all)...)
	message := append([]byte{1}, vector(3, body)...)
	record := func(b []byte) []byte { return append([]byte{22, 3, 1}, vector(2, b)...) }
	switch {
	case is("records"):
		var one []byte
		for len(message) > 0 {
			n := min(7, len(message))
			one, message = append(one, record(message[:n])...), message[n:]
		}
		return [][]byte{one}
	case is("segments"):
		var pieces [][]byte
		for b := range strings.SplitSeq(string(record(message)), "") {
			pieces = append(pieces, []byte(b))
		}
		return pieces
	case is("alert"):
		return [][]byte{append([]byte{21, 3, 1, 0, 2, 1, 0}, record(message)...)}
	case is("behind"):
		first := clientHello("web.example", nil)[0]
		return [][]byte{append(first, record(message)...)}
	}
	return [][]byte{record(message)}
}

// get fetches a URL by way of the proxy that the variables name.
func get(args []string) (string, error) {
	answer, err := http.Get(args[0])
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", errors.New(answer.Status)
	}
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}
