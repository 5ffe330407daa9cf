package admin

// stateLive is the state of an initialized server.
const stateLive = "LIVE"

func (s *Server) ready(w *Response, _ *Request) error {
	state, status := s.State(), 200
	if state != stateLive {
		status = 503
	}
	return w.text(status, state+"\n")
}

func (s *Server) live(w *Response, _ *Request) error { return w.text(200, "OK\n") }

// missing is the response of an endpoint without its source.
func missing(what string) error { return &Error{Status: 501, Msg: what + "\n"} }

func (s *Server) healthcheckFail(w *Response, r *Request) error {
	return s.setHealth(w, r, Health.FailHealth, "DRAINING")
}

func (s *Server) healthcheckOK(w *Response, r *Request) error {
	return s.setHealth(w, r, Health.RestoreHealth, stateLive)
}

func (s *Server) setHealth(w *Response, r *Request, set func(Health), to string) error {
	if s.src.Health == nil {
		return missing("this server has no health check that could fail: the program has set no health switch")
	}
	before := s.State()
	r.Sets(healthSwitch)
	if r.DryRun() {
		if before == stateLive || before == "DRAINING" { // an initializing server stays so
			r.Changed("state", before, to)
		}
		return nil
	}
	set(s.src.Health)
	r.Changed("state", before, s.State())
	return w.text(200, "OK\n")
}

func (s *Server) quit(w *Response, r *Request) error {
	if s.src.Quit == nil {
		return missing("this server cannot be ended from here: the program has set no quit function")
	}
	r.After(s.src.Quit)
	return w.text(200, "OK\n")
}

func (s *Server) reopenLogs(w *Response, _ *Request) error {
	if s.src.ReopenLogs != nil {
		if err := s.src.ReopenLogs(); err != nil {
			return &Error{Msg: "not all log files could be opened\n", Err: err}
		}
	}
	return w.text(200, "OK\n")
}
