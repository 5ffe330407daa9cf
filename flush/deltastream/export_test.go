package deltastream

// Turn sends the next event, if one is due.
func (c *Client) Turn(w Writer) error {
	c.event.w = w
	_, _, err := c.turn()
	return err
}
