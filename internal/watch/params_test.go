package watch

import (
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestParams(t *testing.T) {
	for params, want := range map[string]string{
		`null`:                         "invalid type: null, expected struct FsWatchMissingParams",
		`{}`:                           "missing field `watchId`",
		`{"watchId":1}`:                "missing field `missing`",
		`{"watchId":-1,"missing":[]}`:  "invalid number",
		`{"watchId":1.0,"missing":[]}`: "invalid number",
		`{"watchId":18446744073709551616,"missing":[]}`: "invalid number",
		`{"watchId":"1","missing":[]}`:                  `invalid type: string "1", expected u64`,
		`{"watchId":null,"missing":[]}`:                 "invalid type: null, expected u64",
		`{"watchId":1,"missing":null}`:                  "invalid type: null, expected a sequence",
		`{"watchId":1,"missing":[null]}`:                "invalid type: null, expected a string",
		`{"watchId":1,"missing":["/tmp/x"]}`:            "invalid URI: relative URL without a base",
		`{"watchId":1,"missing":[],"present":5}`:        "invalid type: number, expected a string",
		`{"watchId":1,"missing":[],"present":"x"}`:      "invalid URI: relative URL without a base",
		`{"watchId":1,"missing":[],"present":null}`:     "",
		`{"watchId":1,"missing":["file:///x"],"z":1}`:   "",
	} {
		v, err := proto.Parse([]byte(params))
		if err != nil {
			t.Fatal(params, err)
		}
		_, err = Decode(v)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", params, err)
		case want != "" && (err == nil || err.Error() != want || proto.WireError(err).Code != proto.CodeInvalidParams):
			t.Errorf("%s: %v, want %s", params, err, want)
		}
	}
}
