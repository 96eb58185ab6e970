// Package switching refuses "101 Switching Protocols", for all that are clients of HTTP here.
package switching

import (
	"errors"
	"net/http"
)

// Refuse returns an error, and closes the connection, if r is "101 Switching Protocols", which no request
// here asks for: its body is the connection, and net/http lets no context or deadline end reading it.
func Refuse(r *http.Response) error {
	if r.StatusCode != http.StatusSwitchingProtocols {
		return nil
	}
	r.Body.Close()
	return errors.New("it answers 101 Switching Protocols, which was not asked for")
}
