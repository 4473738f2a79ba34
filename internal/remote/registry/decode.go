package registry

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const (
	acceptEncoding = "zstd,gzip"
	// maxWindow bounds what a compressed answer makes the decoder hold, in bytes. RFC
	// 9659 has it for zstd on the web.
	maxWindow = 8 << 20
)

var errAnswerSize = fmt.Errorf("the answer has more than %d bytes", maxAnswer)

// read returns the body of an answer, decoded.
func read(resp *http.Response) ([]byte, error) {
	raw := &bounded{in: resp.Body, left: maxAnswer}
	var in io.Reader = raw
	switch coding := strings.ToLower(resp.Header.Get("Content-Encoding")); coding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(raw)
		if err != nil {
			return nil, errors.New("the answer is not gzip")
		}
		in = z
	case "zstd":
		z, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, errors.New("the answer is not zstd")
		}
		defer z.Close()
		in = z
	default:
		return nil, errors.New("the answer has a coding that was not asked for")
	}
	text, err := io.ReadAll(&bounded{in: in, left: maxAnswer})
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return text, nil
}

// bounded fails where more comes than it may.
type bounded struct {
	in   io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.in.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, errAnswerSize
	}
	return n, err
}
