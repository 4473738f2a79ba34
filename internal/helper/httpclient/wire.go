package httpclient

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// The reference's limits for the head of a response.
const (
	maxHead   = 417792 // bytes
	maxFields = 100
)

// writeRequest sends a request as the reference does: HTTP/1.1, names in lower
// case, in order. requestTarget is the second word of the first line. whole is
// false if the origin waits for more body than there is.
func writeRequest(w io.Writer, method, requestTarget, host string, h headers, body []byte) (whole bool, err error) {
	b := append([]byte(nil), method+" "+requestTarget+" HTTP/1.1\r\n"...)
	for _, f := range h {
		for _, v := range f.values {
			b = append(append(append(append(b, f.name...), ": "...), v...), "\r\n"...)
		}
	}
	if !h.has("host") {
		b = append(b, "host: "+host+"\r\n"...)
	}
	whole = true
	switch length, said := strconv.ParseUint(h.get("content-length"), 10, 63); {
	case strings.EqualFold(lastCoding(h), "chunked") && len(body) > 0:
		b = append(strconv.AppendInt(append(b, "\r\n"...), int64(len(body)), 16), "\r\n"...)
		body = append(bytes.Clone(body), "\r\n0\r\n\r\n"...)
	case h.has("content-length") && said == nil:
		// What the request says wins over what it has.
		whole = length <= uint64(len(body))
		body = body[:min(length, uint64(len(body)))]
		b = append(b, "\r\n"...)
	case len(body) > 0 && !h.has("content-length"):
		b = append(b, "content-length: "+strconv.Itoa(len(body))+"\r\n\r\n"...)
	default:
		b = append(b, "\r\n"...)
	}
	if len(body) < 64<<10 {
		b, body = append(b, body...), nil
	}
	if _, err := w.Write(b); err != nil {
		return false, err
	}
	if len(body) > 0 {
		_, err = w.Write(body)
	}
	return whole, err
}

// lastCoding is the last transfer coding that the headers name.
func lastCoding(h headers) string {
	values := h.values("transfer-encoding")
	if len(values) == 0 {
		return ""
	}
	last := values[len(values)-1]
	return strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
}

// head is the beginning of a response.
type head struct {
	status  int
	http10  bool
	headers headers
}

var errHead = errors.New("the response is not HTTP")

// readHead reads the head of a response; those that only announce another one
// are passed over.
func readHead(r *bufio.Reader) (*head, error) {
	left := maxHead
	for {
		h, err := readOneHead(r, &left)
		if err != nil || h.status >= 200 || h.status == 101 {
			return h, err
		}
	}
}

func readOneHead(r *bufio.Reader, left *int) (*head, error) {
	line, err := readLine(r, left)
	if err != nil {
		return nil, err
	}
	h := &head{}
	if h.status, h.http10, err = parseStatus(line); err != nil {
		return nil, err
	}
	for fields := 0; ; fields++ {
		line, err := readLine(r, left)
		if err != nil {
			return nil, err
		}
		if line == "" {
			return h, nil
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !isToken(name) || !isValue(value) || fields == maxFields {
			return nil, errHead
		}
		h.headers.add(lower(name), value)
	}
}

func parseStatus(line string) (status int, http10 bool, err error) {
	version, rest, _ := strings.Cut(line, " ")
	code, reason, _ := strings.Cut(rest, " ")
	status, err = strconv.Atoi(code)
	if version != "HTTP/1.1" && version != "HTTP/1.0" || err != nil || len(code) != 3 || status < 100 || !isValue(reason) {
		return 0, false, errHead
	}
	return status, version == "HTTP/1.0", nil
}

// readLine reads a line without its end and takes it off what is left.
func readLine(r *bufio.Reader, left *int) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if *left -= len(part); *left < 0 {
			return "", errHead
		}
		line = append(line, part...)
		if err == nil {
			return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return "", err
		}
	}
}

// framing says how the body of a response ends.
type framing struct {
	chunked bool
	length  int64 // -1: with the connection
}

// frame decides on the framing by RFC 9112, section 6.3.
func (h *head) frame(method string) (framing, error) {
	lengths := h.headers.values("content-length")
	length := int64(-1)
	for _, text := range lengths {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil || length >= 0 && int64(n) != length {
			return framing{}, errHead
		}
		length = int64(n)
	}
	switch {
	case method == "HEAD" || h.status == 204 || h.status == 304 || h.status == 101 || method == "CONNECT" && h.status/100 == 2:
		return framing{length: 0}, nil
	case h.headers.has("transfer-encoding"):
		if h.http10 {
			return framing{}, errHead
		}
		return framing{chunked: strings.EqualFold(lastCoding(h.headers), "chunked"), length: -1}, nil
	}
	return framing{length: length}, nil
}

// keeps tells whether the connection can carry another request after the body.
func (h *head) keeps(method string, f framing, sent headers) bool {
	if h.status == 101 || method == "CONNECT" || !f.chunked && f.length < 0 {
		return false
	}
	for _, hs := range []headers{h.headers, sent} {
		for _, v := range hs.values("connection") {
			for word := range strings.SplitSeq(v, ",") {
				switch lower(strings.TrimSpace(word)) {
				case "close", "upgrade":
					return false
				case "keep-alive":
					if h.http10 {
						return true
					}
				}
			}
		}
	}
	return !h.http10
}
