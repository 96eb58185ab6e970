package etf

import "testing"

// The elements of a String are its bytes, also where these are characters in UTF-8.
func TestElements(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, text := range []String{"", "text", "\x00\x1b\x21\xc3\xa9\x01", String(every), "é€\U0001F600"} {
		elements, ok := Elements(text)
		if !ok || len(elements) != len(text) {
			t.Errorf("%q: %v, %t", text, elements, ok)
			continue
		}
		for i, e := range elements {
			if e != int64(text[i]) {
				t.Errorf("%q: element %d is %v", text, i, e)
			}
		}
	}
	if _, ok := Elements(ImproperList{List{int64(1)}, int64(2)}); ok {
		t.Error("an improper list has elements")
	}
}
