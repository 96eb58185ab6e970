// Package switching refuses "101 Switching Protocols" for HTTP clients.
package switching

import (
	"errors"
	"net/http"
)

// Refuse returns an error, and closes the connection, if r is "101 Switching Protocols". The body of such a
// response is the connection itself, to which net/http does not apply contexts or deadlines.
func Refuse(r *http.Response) error {
	if r.StatusCode != http.StatusSwitchingProtocols {
		return nil
	}
	r.Body.Close()
	return errors.New("answered 101 Switching Protocols, which was not requested")
}
