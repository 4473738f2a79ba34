package socket

import "io"

// Next returns a reader of the next message, for who does not want all of it. It
// has to be read to its end before the next call of any reading method.
func (s *Socket) Next() (io.Reader, error) {
	_, r, err := s.ws.Reader(s.ctx)
	if err != nil {
		err = plain(err)
		s.failed.CompareAndSwap(nil, &err)
	}
	return r, err
}
