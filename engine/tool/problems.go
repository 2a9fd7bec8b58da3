package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxProblems is how many faults of one call are told at once.
const maxProblems = 3

// problems words a schema error: the leaf faults, nearest to the top first.
func problems(err error) string {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return err.Error()
	}
	var leaves []*jsonschema.ValidationError
	collectLeaves(v, &leaves)
	sort.SliceStable(leaves, func(i, j int) bool {
		return strings.Join(leaves[i].InstanceLocation, "/") < strings.Join(leaves[j].InstanceLocation, "/")
	})
	var out []string
	for i, l := range leaves {
		if i == maxProblems {
			out = append(out, fmt.Sprintf("and %d more", len(leaves)-i))
			break
		}
		out = append(out, problem(l))
	}
	return strings.Join(out, "; ")
}

func collectLeaves(v *jsonschema.ValidationError, out *[]*jsonschema.ValidationError) {
	if len(v.Causes) == 0 {
		*out = append(*out, v)
		return
	}
	for _, c := range v.Causes {
		collectLeaves(c, out)
	}
}

// problem words one fault, naming the argument.
func problem(v *jsonschema.ValidationError) string {
	at := location(v.InstanceLocation)
	switch k := v.ErrorKind.(type) {
	case *kind.Required:
		return fmt.Sprintf("%s is missing", names(v.InstanceLocation, k.Missing))
	case *kind.AdditionalProperties:
		return fmt.Sprintf("there is no argument %s", names(v.InstanceLocation, k.Properties))
	case *kind.Type:
		return fmt.Sprintf("%s must be %s, not %s", at, article(strings.Join(k.Want, " or ")), article(k.Got))
	case *kind.Enum:
		return fmt.Sprintf("%s must be one of %s, not %s", at, values(k.Want), values([]any{k.Got}))
	case *kind.MinLength:
		if k.Got == 0 {
			return at + " must not be empty"
		}
		return fmt.Sprintf("%s must have at least %d characters", at, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("%s is %d characters long; at most %d are allowed", at, k.Got, k.Want)
	case *kind.MinItems:
		if k.Want == 1 {
			return at + " must not be empty"
		}
		return fmt.Sprintf("%s has %d entries; at least %d are needed", at, k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("%s has %d entries; at most %d are allowed", at, k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("%s has %d entries; at most %d are allowed", at, k.Got, k.Want)
	case *kind.Minimum:
		return fmt.Sprintf("%s must be at least %s", at, k.Want.RatString())
	case *kind.Maximum:
		return fmt.Sprintf("%s must be at most %s", at, k.Want.RatString())
	case *kind.UniqueItems:
		return fmt.Sprintf("%s holds the same entry twice", at)
	}
	return fmt.Sprintf("%s does not satisfy %q", at, strings.Join(v.ErrorKind.KeywordPath(), "/"))
}

// location names the place of a fault: "path", "items[2].text".
func location(parts []string) string {
	if len(parts) == 0 {
		return "the whole"
	}
	var b strings.Builder
	for i, p := range parts {
		switch {
		case i == 0:
			b.WriteString(p)
		case strings.Trim(p, "0123456789") == "":
			b.WriteString("[" + p + "]")
		default:
			b.WriteString("." + p)
		}
	}
	return quoteShort(b.String())
}

// names lists members below a place.
func names(at, members []string) string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = location(append(append([]string{}, at...), m))
	}
	return strings.Join(out, ", ")
}

func values(vs []any) string {
	out := make([]string, len(vs))
	for i, v := range vs {
		b, err := json.Marshal(v)
		if err != nil {
			b = fmt.Append(nil, v)
		}
		out[i] = string(b)
		if r := []rune(out[i]); len(r) > 60 {
			out[i] = string(r[:60]) + "…"
		}
	}
	return strings.Join(out, ", ")
}

func article(noun string) string {
	switch noun {
	case "null":
		return noun
	case "object", "array", "integer":
		return "an " + noun
	case "boolean":
		return "true or false"
	}
	return "a " + noun
}
