package network

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped []*connection
		b := newBook(func(c *connection) { dropped = append(dropped, c) })
		k := key{netip.MustParseAddrPort("192.0.2.2:4000"), netip.MustParseAddrPort("1.1.1.1:443")}
		other := key{k.from, netip.MustParseAddrPort("1.1.1.1:80")}
		if b.begin(k) != unknown || b.begin(k) != making || b.begin(other) != unknown || b.take(k) != nil {
			t.Error("begin")
		}
		b.fail(other)
		if b.begin(other) != unknown {
			t.Error("fail")
		}
		c := &connection{key: k}
		if !b.put(k, c) || b.begin(k) != ready || b.take(k) != c || b.take(k) != nil || b.begin(k) != unknown {
			t.Error("put and take")
		}
		time.Sleep(2 * patience)
		synctest.Wait()
		if len(dropped) != 0 {
			t.Error("dropped what was taken")
		}
		b.put(k, c)
		time.Sleep(patience)
		synctest.Wait()
		if len(dropped) != 1 || b.begin(k) != unknown {
			t.Errorf("dropped %d", len(dropped))
		}
		b.put(k, c)
		b.close()
		if len(dropped) != 2 || b.put(k, c) {
			t.Errorf("after close: dropped %d", len(dropped))
		}
		time.Sleep(2 * patience)
		synctest.Wait()
		if len(dropped) != 2 {
			t.Error("dropped again")
		}
	})
}
