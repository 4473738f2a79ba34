package units

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "4096": 4096, "1KiB": 1 << 10, "512MiB": 512 << 20, "2 GiB": 2 << 30, "3TiB": 3 << 40,
		"9223372036854775807": 1<<63 - 1,
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5GiB", "1GB", "GiB", "1 gib", "9223372036854775808", "8388608TiB", "1e3", "+1"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d", text, s)
		}
	}
	for size, want := range map[Size]string{0: "0", 1000: "1000", 1 << 30: "1GiB", 1536 << 20: "1536MiB"} {
		if size.String() != want {
			t.Errorf("%d is written %s", int64(size), size)
		}
	}
}
