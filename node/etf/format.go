package etf

// Format appends t as Erlang's io:format("~0p") prints it, on one line.
func Format(dst []byte, t Term) []byte { return dst }
