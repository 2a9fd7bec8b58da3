package window

import "strings"

// families are the usual ratios between a family's own count and a quarter of
// the bytes, in parts per thousand, for code and English prose. They hold until
// the provider's first usage figure, and are chosen rather too high: a request
// that is refused costs more than a page that is turned early.
var families = []struct {
	word  string
	scale int
}{
	{"script/", 1000},
	{"claude", 1350},
	{"gemini", 1150},
	{"gpt", 1100},
	{"qwen", 1200},
	{"deepseek", 1200},
	{"llama", 1200},
	{"mistral", 1300},
}

// family is the ratio of a model, by its full name.
func family(model string) int {
	model = strings.ToLower(model)
	for _, f := range families {
		if strings.Contains(model, f.word) {
			return f.scale
		}
	}
	return 1250
}
