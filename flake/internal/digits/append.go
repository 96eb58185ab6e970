package digits

// Append appends (hi, lo) in a base from 2 to 62, without leading zeros. On
// [ErrBase] dst comes back as it was.
func Append(dst []byte, hi, lo uint64, base int) ([]byte, error) {
	if base < MinBase || base > MaxBase {
		return dst, ErrBase
	}
	if base == MaxBase {
		return append62(dst, hi, lo), nil
	}
	var buf [128]byte
	return append(dst, buf[put(&buf, hi, lo, base):]...), nil
}

// AppendPadded appends (hi, lo), which is of the size, with leading zeros to
// [Size.Width] digits. On [ErrBase] dst comes back as it was.
func (s *Size) AppendPadded(dst []byte, hi, lo uint64, base int) ([]byte, error) {
	if base < MinBase || base > MaxBase {
		return dst, ErrBase
	}
	width := int(s.widths[base])
	switch {
	case base == MaxBase && width == 22:
		return appendPadded62(dst, hi, lo), nil
	case base == MaxBase && width == 11:
		return appendPadded62of64(dst, lo), nil
	}
	var buf [128]byte
	first, padded := put(&buf, hi, lo, base), len(buf)-width
	for i := padded; i < first; i++ {
		buf[i] = '0'
	}
	return append(dst, buf[padded:]...), nil
}

// Text is the number in a base from 2 to 62, without leading zeros. Another base is
// [ErrBase].
func Text(hi, lo uint64, base int) (string, error) {
	var buf [128]byte
	text, err := Append(buf[:0], hi, lo, base)
	return string(text), err
}

// Padded is the number, which is of the size, with leading zeros to [Size.Width]
// digits. Another base is [ErrBase].
func (s *Size) Padded(hi, lo uint64, base int) (string, error) {
	var buf [128]byte
	text, err := s.AppendPadded(buf[:0], hi, lo, base)
	return string(text), err
}

// put writes (hi, lo) to the end of buf without leading zeros, a word of digits
// at a time, and returns the place of the first digit.
func put(buf *[128]byte, hi, lo uint64, base int) int {
	r, at := radixes[base], len(buf)
	for hi != 0 {
		var rest uint64
		hi, lo, rest = divide(hi, lo, r.power)
		for range r.chunk {
			at--
			buf[at] = alphabet[rest%uint64(base)]
			rest /= uint64(base)
		}
	}
	for {
		at--
		buf[at] = alphabet[lo%uint64(base)]
		if lo /= uint64(base); lo == 0 {
			return at
		}
	}
}
