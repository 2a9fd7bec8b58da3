package machine

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
)

// The numbers under which fields are stored are for ever: a ledger of today is
// read by the Pawl of tomorrow. New fields get new numbers.
func TestFieldNumbersNeverChange(t *testing.T) {
	lines := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		seen := map[string]string{}
		for i := range typ.NumField() {
			f := typ.Field(i)
			tag := f.Tag.Get("cbor")
			if tag == "" || tag == "-" {
				t.Errorf("%s.%s has no number", typ.Name(), f.Name)
				continue
			}
			n, _, _ := strings.Cut(tag, ",")
			if other, ok := seen[n]; ok {
				t.Errorf("%s: %s and %s share number %s", typ.Name(), f.Name, other, n)
			}
			seen[n] = f.Name
			line := fmt.Sprintf("%s %3s %s %s", typ.Name(), n, f.Tag.Get("json"), f.Type)
			if !lines[line] {
				lines[line] = true
				walk(f.Type)
			}
		}
	}
	for _, k := range Kinds() {
		walk(kinds[k])
	}
	out := make([]string, 0, len(lines))
	for l := range lines {
		out = append(out, l)
	}
	sort.Strings(out)
	golden.RequireEqual(t, strings.Join(out, "\n")+"\n")
}
