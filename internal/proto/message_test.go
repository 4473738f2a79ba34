package proto

import (
	"strings"
	"testing"
)

func TestMessagesAreClassifiedByShape(t *testing.T) {
	const malformed = MessageKind(99)
	for _, test := range []struct {
		text string
		want MessageKind
	}{
		{`{"id":1,"method":"m"}`, Request},
		{`{"id":1,"method":"m","params":null}`, Request},
		{`{"id":1,"method":"m","params":{}}`, Request},
		{`{"id":"","method":""}`, Request},
		{`{"id":1,"method":"m","result":{}}`, Request},
		{`{"id":1,"method":"m","error":5}`, Request},
		{`{"jsonrpc":7,"id":1,"method":"m","other":[{}]}`, Request},
		{`{"method":"m"}`, Notification},
		{`{"method":"m","params":[1]}`, Notification},
		{`{"method":"m","result":1}`, Notification},
		{`{"id":1,"result":null}`, Answer},
		{`{"id":"x","result":{"a":1}}`, Answer},
		{`{"id":1,"result":1,"error":2}`, Answer},
		{`{"id":1,"error":{"code":-1,"message":""}}`, Answer},
		{`{"id":1,"error":{"code":-1,"message":"m","data":{}}}`, Answer},

		{`{}`, malformed},
		{`{"id":1}`, malformed},
		{`{"params":{}}`, malformed},
		{`{"result":1}`, malformed},
		{`{"error":{"code":1,"message":""}}`, malformed},
		{`{"id":1,"error":null}`, malformed},
		{`{"id":1,"error":"text"}`, malformed},
		{`{"id":1,"error":{"message":"m"}}`, malformed},
		{`{"id":1,"error":{"code":1}}`, malformed},
		{`{"id":1,"method":null}`, malformed},
		{`{"id":1,"method":5}`, malformed},
		{`{"Method":"m","ID":1}`, malformed},
		{`[{"id":1,"method":"m"}]`, malformed},
		{`[]`, malformed}, {`null`, malformed}, {`1`, malformed}, {`"m"`, malformed}, {`true`, malformed},
	} {
		m, err := ParseMessage([]byte(test.text))
		if err != nil {
			m.Kind = malformed
			if err.Error() != "expected a JSON-RPC object" {
				t.Errorf("%s: %v", test.text, err)
			}
		}
		if m.Kind != test.want {
			t.Errorf("%s is of kind %d, want %d", test.text, m.Kind, test.want)
		}
	}
}

func TestMessageParts(t *testing.T) {
	m, err := ParseMessage([]byte(`{"params":{"a":1},"method":"process/\u0073tart","id":"7"}`))
	if err != nil || m.Method != "process/start" || m.Params.Get("a").Kind != Number || m.ID.Kind != String || m.ID.Str() != "7" {
		t.Errorf("got %+v, %v", m, err)
	}
	m, err = ParseMessage([]byte(`{"id":1,"result":[2]}`))
	if err != nil || m.Result.Len() != 1 {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestIDsAreStringsOrSigned64BitIntegers(t *testing.T) {
	for _, id := range []string{
		`0`, `-1`, `9223372036854775807`, `-9223372036854775808`, `""`, `"12"`, `"é\n"`, `"\ud83d\ude00\u0041"`,
	} {
		text := `{"id":` + id + `,"method":"m"}`
		m, err := ParseMessage([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, want := string(ResultFrame(m.ID, Empty{}).Body()), `{"id":`+id+`,"result":{}}`; got != want {
			t.Errorf("the answer is %s, want %s", got, want)
		}
	}
	for _, id := range []string{
		`null`, `1.0`, `1.5`, `1e3`, `true`, `false`, `[]`, `{}`, `[1]`, `9223372036854775808`, `-9223372036854775809`,
	} {
		for _, rest := range []string{`,"method":"m"}`, `,"result":1}`, `,"error":{"code":1,"message":""}}`} {
			if m, err := ParseMessage([]byte(`{"id":` + id + rest)); err == nil {
				t.Errorf("the id %s is accepted: %+v", id, m)
			}
		}
	}
}

func TestTraceIsAnObjectOrNull(t *testing.T) {
	for trace, ok := range map[string]bool{
		`null`: true, `{}`: true, `{"traceparent":5,"x":[]}`: true, `{"traceparent":"00-00-00-00","tracestate":null}`: true,
		`1`: false, `"t"`: false, `[]`: false, `true`: false,
	} {
		_, err := ParseMessage([]byte(`{"id":1,"method":"m","trace":` + trace + `}`))
		if (err == nil) != ok {
			t.Errorf("trace %s: %v", trace, err)
		}
	}
}

func TestLimitsHoldInsideParams(t *testing.T) {
	message := func(n int) string {
		return `{"id":1,"method":"m","params":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	if _, err := ParseMessage([]byte(message(126))); err != nil {
		t.Errorf("126 arrays inside params: %v", err)
	}
	if _, err := ParseMessage([]byte(message(127))); err == nil {
		t.Error("127 arrays inside params are accepted")
	}
}
