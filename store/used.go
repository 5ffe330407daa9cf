package store

// usedBits marks the stats of a block that had been updated when a cursor first
// reached the block.
type usedBits struct {
	known bool
	bits  bitset
}

// UsedOnly makes the cursor skip stats that were never updated. When the cursor
// first reaches a block it collects the used stats in memory order, so that it
// does not touch the others one by one. It must be called before Next. A first
// update during the walk can be missed.
func (c *Cursor) UsedOnly() { c.used = make([]usedBits, len(c.blocks)) }

// refill sets the chunk of c to the next ids, if there are any.
func (c *Cursor) refill() {
	c.nextChunk()
	if c.used == nil {
		return
	}
	kept := c.keepUsed(c.usedIDs[:0])
	for len(kept) < batchSteps && len(c.chunks) > 0 {
		c.nextChunk()
		kept = c.keepUsed(kept)
	}
	c.chunk, c.usedIDs = kept, kept
}

func (c *Cursor) nextChunk() {
	if c.pick != nil {
		c.pick.fill(c)
		return
	}
	c.chunk, c.chunks = c.chunks[0], c.chunks[1:]
}

// keepUsed appends the ids of used stats in the chunk.
func (c *Cursor) keepUsed(kept []id) []id {
	for _, x := range c.chunk {
		u := &c.used[x>>slotBits]
		if !u.known {
			u.note(c.block(x))
		}
		if u.bits.has(int(x & (1<<slotBits - 1))) {
			kept = append(kept, x)
		}
	}
	return kept
}

func (u *usedBits) note(b *block) {
	u.known = true
	if b == nil {
		return
	}
	for i := range slotsPerBlock {
		if b.alive.has(i) && b.isUsed(i) {
			u.bits.set(i)
		}
	}
}
