package proto

import "testing"

func TestCountsComeAsTheyWent(t *testing.T) {
	for _, want := range []Counts{{}, {Sessions: 3, Processes: 1}, {Sessions: 1<<31 - 1, Processes: 1<<31 - 1}} {
		f := want.Frame()
		got, err := ParseCounts(f.Body())
		if err != nil || got != want || len(f) > MaxCounts {
			t.Errorf("got %+v, %v in %d bytes; want %+v", got, err, len(f), want)
		}
	}
}

func TestCountsOfAnotherKindAreRefused(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `[]`, `null`, `{"sessions":1}`, `{"processes":1}`,
		`{"sessions":-1,"processes":0}`, `{"sessions":0,"processes":2147483648}`, `{"sessions":1e3,"processes":0}`,
		`{"sessions":"1","processes":0}`, `{"sessions":99999999999999999999,"processes":0}`,
	} {
		if c, err := ParseCounts([]byte(text)); err == nil {
			t.Errorf("%s is taken for %+v", text, c)
		}
	}
}

func FuzzParseCounts(f *testing.F) {
	f.Add([]byte(`{"sessions":1,"processes":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseCounts(text)
		if err != nil {
			return
		}
		if again, err := ParseCounts(c.Frame().Body()); err != nil || again != c {
			t.Errorf("%q: %+v becomes %+v, %v", text, c, again, err)
		}
	})
}
