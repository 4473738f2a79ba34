package remote

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"
)

const (
	// steady is how long a socket of streams has to hold for the delays to start
	// over.
	steady = 120 * time.Second
	// slowly is how long a link that was refused waits. It need not: who changes a
	// credential is noticed.
	slowly = 5 * time.Minute
	// maxRetryAfter bounds what a registry may ask for.
	maxRetryAfter = time.Hour
)

// doubling is first times 2^(n-1), at most limit.
func doubling(first, limit time.Duration, n int) time.Duration {
	if n > 16 {
		return limit
	}
	return min(first<<(n-1), limit)
}

// delay is the wait before the n-th try in a row, n from 1, for another socket.
func (l *Link) delay(n int) time.Duration {
	if l.opts.Transport == Direct {
		// Not by chance, so that executors whose sockets ended together come back
		// one by one, each time alike.
		h := fnv.New64a()
		_, _ = h.Write([]byte(l.opts.EnvironmentID + "/" + strconv.Itoa(n)))
		d := doubling(500*time.Millisecond, 5*time.Second, n)
		return d + time.Duration(float64(d)/2*float64(h.Sum64()%1000)/1000)
	}
	d := doubling(time.Second, 30*time.Second, n)
	return d/2 + rand.N(d/2+1)
}

// registerDelay is the wait before the n-th try in a row for a registration.
func registerDelay(n int) time.Duration {
	d := doubling(500*time.Millisecond, 30*time.Second, n)
	return d + rand.N(d/2+1)
}

func slow() time.Duration { return slowly + rand.N(slowly/4) }
