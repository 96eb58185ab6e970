package epmd

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// serve answers the one request of a connection. A registration lasts until conn is closed.
func (s *Server) serve(conn net.Conn, local bool) {
	conn.SetDeadline(time.Now().Add(s.idle))
	req, err := readRequest(conn)
	if err == nil {
		err = s.answer(conn, req, local)
	}
	if err != nil {
		s.log.Debug("epmd: connection closed", "peer", conn.RemoteAddr(), "err", err)
	}
}

func readRequest(r io.Reader) ([]byte, error) {
	head, err := more(r, nil, 2)
	if err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint16(head))
	if size < 1 || size > maxRequest {
		return nil, fmt.Errorf("request of %d bytes, 1 to %d allowed", size, maxRequest)
	}
	return more(r, nil, size)
}

func (s *Server) answer(conn net.Conn, req []byte, local bool) error {
	switch tag := Tag(req[0]); tag {
	case TagAlive2Req:
		if !local {
			return fmt.Errorf("%s from another host", tag)
		}
		return s.register(conn, req)
	case TagPortPlease2Req:
		return s.lookup(conn, req)
	case TagNamesReq:
		return s.names(conn)
	case TagKillReq:
		// The real daemon's answer while nodes live. It makes epmd -kill say so.
		_, err := io.WriteString(conn, "NO")
		return err
	default:
		return fmt.Errorf("%s is not served", tag)
	}
}

func (s *Server) register(conn net.Conn, req []byte) error {
	var alive Alive2Req
	if err := alive.Decode(req); err != nil {
		return err
	}
	n := &alive.Node
	resp := Alive2Resp{Extended: n.Highest >= Version6}
	creation, ok := s.table.add(n)
	if !ok {
		resp.Result, resp.Creation = ResultRefused, refusedCreation
		return send(conn, &resp)
	}
	defer s.table.remove(n)
	resp.Creation = creation
	if !resp.Extended {
		resp.Creation = oldCreation(creation)
	}
	if err := send(conn, &resp); err != nil {
		return err
	}
	s.log.Debug("epmd: registered", "name", n.Name, "port", n.Port)
	// A registered node has nothing more to say: a byte ends the registration too.
	conn.SetDeadline(time.Time{})
	conn.Read(make([]byte, 1))
	s.log.Debug("epmd: unregistered", "name", n.Name)
	return nil
}

// refusedCreation fills the field in a refusal, as in the real daemon's.
const refusedCreation = 99

func (s *Server) lookup(conn net.Conn, req []byte) error {
	var please PortPlease2Req
	if err := please.Decode(req); err != nil {
		return err
	}
	resp := Port2Resp{Result: ResultRefused}
	if n, ok := s.table.lookup(please.Name); ok {
		resp = Port2Resp{Node: n}
	}
	return send(conn, &resp)
}

func (s *Server) names(conn net.Conn) error {
	resp := NamesResp{Names: s.table.names()}
	if addr, ok := conn.LocalAddr().(*net.TCPAddr); ok {
		resp.Port = uint16(addr.Port)
	}
	return send(conn, &resp)
}

func send(conn net.Conn, m message) error {
	buf, err := m.Append(nil)
	if err == nil {
		_, err = conn.Write(buf)
	}
	return err
}
