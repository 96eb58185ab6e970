package epmd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// serve answers the one request of a connection. A registration lasts until it is closed.
func (s *Server) serve(v *visit) {
	v.SetDeadline(time.Now().Add(s.answerTime))
	req, err := readRequest(v)
	if err == nil {
		err = s.answer(v, req)
	}
	switch {
	case errors.Is(err, errFull):
		s.log.Warn("epmd: a node is not registered", "address", v.RemoteAddr(), "err", err)
	case err != nil:
		s.log.Debug("epmd: connection closed", "address", v.RemoteAddr(), "err", err)
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

func (s *Server) answer(v *visit, req []byte) error {
	switch tag := Tag(req[0]); tag {
	case TagAlive2Req:
		if !v.local {
			return fmt.Errorf("%s from another host", tag)
		}
		return s.register(v, req)
	case TagPortPlease2Req:
		return s.lookup(v, req)
	case TagNamesReq:
		return s.names(v)
	case TagKillReq:
		// The real daemon's answer while nodes live. epmd -kill then says so.
		_, err := io.WriteString(v, "NO")
		return err
	default:
		return fmt.Errorf("%s is not served", tag)
	}
}

func (s *Server) register(v *visit, req []byte) error {
	var alive Alive2Req
	if err := alive.Decode(req); err != nil {
		return err
	}
	if err := s.stay(v); err != nil {
		return err
	}
	n := &alive.Node
	resp := Alive2Resp{Extended: n.Highest >= Version6}
	creation, ok := s.table.add(n)
	if !ok {
		resp.Result, resp.Creation = ResultRefused, refusedCreation
		return send(v, &resp)
	}
	defer s.table.remove(n)
	resp.Creation = creation
	if !resp.Extended {
		resp.Creation = oldCreation(creation)
	}
	if err := send(v, &resp); err != nil {
		return err
	}
	s.log.Debug("epmd: registered", "node", n.Name, "port", n.Port)
	// A registered node has nothing more to say: a byte ends the registration too.
	v.SetDeadline(time.Time{})
	v.Read(make([]byte, 1))
	s.log.Debug("epmd: unregistered", "node", n.Name)
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
