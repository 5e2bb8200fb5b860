package input

// CheckJSON returns an *Error when the text is larger than the bounds or a decoder would make more of it. It decodes nothing, and says nothing about a text
// that is no JSON: the decoder does.
func CheckJSON(text []byte, b Bounds) error {
	if err := checkBytes(int64(len(text)), b); err != nil {
		return err
	}
	c := counter{bounds: b, elements: 1}
	for i := 0; i < len(text); i++ {
		var err error
		switch text[i] {
		case '"':
			i = endOfString(text, i)
		case '[', '{':
			if err = c.add(1); err == nil {
				err = c.enter()
			}
		case ']', '}':
			c.depth--
		case ',':
			err = c.add(1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endOfString returns the index of the quotation mark that ends the string which begins at i, or the end of the text.
func endOfString(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
